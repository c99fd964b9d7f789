"""Composed reductions, scans and orderings along dimensions."""
