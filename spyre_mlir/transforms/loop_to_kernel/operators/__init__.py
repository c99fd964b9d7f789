"""Lowering of each op of the loop level to planned kernels on buffers with layouts."""
