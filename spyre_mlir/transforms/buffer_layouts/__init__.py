"""Passes that choose layouts, lay out the buffers of kernels otherwise, or let kernels use them as they lie."""
