"""Helpers of `convert-aten-to-spyre-loop`."""
