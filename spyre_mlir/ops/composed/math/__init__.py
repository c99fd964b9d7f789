"""Composed element-wise functions, comparisons and matrix products."""
