"""Registration of operations, lowerings, passes and host steps by other packages."""
