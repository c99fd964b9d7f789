"""Streams, progress, errors and tables shared by the tools."""
