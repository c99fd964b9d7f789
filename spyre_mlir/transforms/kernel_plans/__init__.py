"""Kernels as pass `plan` divides them: what each may do, blocks of them together, and a record of what is looked at."""
