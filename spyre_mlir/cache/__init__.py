"""Lowered programs on disk: what was lowered once, by any process, is not lowered again.

An entry is found by a key of all that lowering depends on. It holds text and no code, and its digest is checked before
anything of it is used.
"""
