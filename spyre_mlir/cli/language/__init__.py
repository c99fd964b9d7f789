"""Language server: what an editor asks about IR text, without the protocol except in `server`."""
