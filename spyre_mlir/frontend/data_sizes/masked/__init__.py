"""Masks in the graph of a piece that runs on padded tensors, and what reads and writes rows beside padding."""
