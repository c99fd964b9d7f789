"""The command line tools."""
