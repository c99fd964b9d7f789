"""Modes of spyre-compile besides writing a bundle, one per module."""
