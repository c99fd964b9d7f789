"""Indices of one element that a tensor says, as `c[:, position]`: read and written without a size that data decides."""
