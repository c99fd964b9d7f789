"""Layouts of a whole plan, once all its kernels are known: equal, kept by arguments, within reach."""
