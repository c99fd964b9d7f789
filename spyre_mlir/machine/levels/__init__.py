"""Interpreters of the aten, loop and kernel levels."""
