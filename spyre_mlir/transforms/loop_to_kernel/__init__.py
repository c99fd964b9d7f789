"""Helpers of `convert-spyre-loop-to-spyre-kernel`."""
