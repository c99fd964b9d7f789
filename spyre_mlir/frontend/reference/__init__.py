"""Torch's own results: the reference that every level is compared with."""
