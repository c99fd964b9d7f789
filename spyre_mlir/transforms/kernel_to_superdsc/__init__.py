"""Helpers of `convert-spyre-kernel-to-superdsc`."""
