"""Torch modes and traces that see a model while it is exported: known values, truth values, derivatives."""
