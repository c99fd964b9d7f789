"""Contents of the cache that the environment asks for: to look at, and to remove."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from spyre_mlir.cache.settings import store_of
from spyre_mlir.errors import InputError
from spyre_mlir.text.notebook import ShownAsText


@dataclass(frozen=True, repr=False)
class CacheInfo(ShownAsText):
    """Contents of the cache on disk; prints as a line.

    Attributes:
        directory: where it is; None if it is off.
        entries: how many lowered programs it has.
        size: their bytes.
        limit: bytes that they may take; beyond it the least recently used go.
    """

    directory: Path | None
    entries: int
    size: int
    limit: int

    def __str__(self) -> str:
        if self.directory is None:
            return "the cache is off"
        return f"{self.directory}: {self.entries:,} entries, {self.size:,} of {self.limit:,} bytes"


def cache_info() -> CacheInfo:
    """Return where the cache of lowered programs is, and how much it holds.

    Raises:
        InputError: ``SPYRE_MLIR_CACHE_SIZE`` is no size.
    """
    store = store_of(os.environ)
    if store is None:
        return CacheInfo(None, 0, 0, 0)
    usage = store.usage()
    return CacheInfo(store.directory, usage.entries, usage.size, store.limit)


def clear_cache() -> CacheInfo:
    """Remove all entries of the cache of lowered programs; other files of its directory stay.

    Returns:
        What was removed.

    Raises:
        InputError: an entry cannot be removed, or ``SPYRE_MLIR_CACHE_SIZE`` is no size.
    """
    store = store_of(os.environ)
    if store is None:
        return CacheInfo(None, 0, 0, 0)
    try:
        removed = store.clear()
    except OSError as error:
        raise InputError(f"the cache cannot be emptied: {error.strerror}", where=str(store.directory)) from error
    return CacheInfo(store.directory, removed.entries, removed.size, store.limit)
