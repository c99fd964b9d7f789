"""Loops around kernels: groups that share rows, what their trips make, and trials of what they save."""
