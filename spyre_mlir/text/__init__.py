"""Reading and writing IR text."""
