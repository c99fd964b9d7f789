"""Patterns that `canonicalize` applies to ops of the `spyre` dialect."""
