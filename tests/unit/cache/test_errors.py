"""Reasons for which a program is not cached."""

from __future__ import annotations

from spyre_mlir.cache.errors import NotCacheableError
from spyre_mlir.errors import SpyreError


def test_it_is_no_error_of_the_program() -> None:
    assert not issubclass(NotCacheableError, SpyreError)
    assert str(NotCacheableError("why")) == "why"
