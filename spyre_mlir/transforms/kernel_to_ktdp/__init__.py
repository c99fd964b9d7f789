"""Helpers of `convert-spyre-kernel-to-ktdp`."""
