"""Proof that a program may run on padded inputs: what padding holds never reaches a result."""
