"""The interpreter as hardware model: runs every level."""
