"""Reasons for which a program is not cached."""

from __future__ import annotations


class NotCacheableError(Exception):
    """A program depends on an object whose identity no other process would find equal; names the object."""
