"""Composed reductions, scans and orderings along dimensions.

Decision: docs/decisions/0061-a-dimension-against-itself.md
"""
