"""The interpreter as hardware model: every level runs here."""
