"""Notes of plans at kernels and functions, and which kernels stand for which while a plan is made."""
