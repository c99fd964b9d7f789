"""Capture of a model as a functional ATen graph."""
