"""Flags that say what to compile or which passes run."""
