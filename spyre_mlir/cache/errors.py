"""Reasons for which a program is not cached."""

from __future__ import annotations


class NotCacheableError(Exception):
    """Something that a program depends on has no identity that another process would find equal; says what."""
