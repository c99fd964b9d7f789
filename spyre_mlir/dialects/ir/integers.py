"""Integers as attributes: each is made, and checked, once."""

from __future__ import annotations

from functools import lru_cache

from xdsl.dialects.builtin import I64, IndexType, IntegerAttr, i64

_KEPT = 1 << 14
_INDEX = IndexType()


@lru_cache(maxsize=_KEPT)
def index_attribute(value: int) -> IntegerAttr[IndexType]:
    """Return ``value : index``."""
    return IntegerAttr(value, _INDEX)


@lru_cache(maxsize=_KEPT)
def i64_attribute(value: int) -> IntegerAttr[I64]:
    """Return ``value : i64``."""
    return IntegerAttr(value, i64)


__all__ = ["i64_attribute", "index_attribute"]
