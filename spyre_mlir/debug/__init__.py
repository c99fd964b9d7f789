"""Comparison of levels, and runs of stored bundles."""
