"""Composed element-wise functions, comparisons and matrix products.

Decision: docs/decisions/0066-floor-division-is-corrected.md
"""
