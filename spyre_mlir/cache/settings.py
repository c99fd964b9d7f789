"""Place and size of the cache, from the environment: ``SPYRE_MLIR_CACHE`` and ``SPYRE_MLIR_CACHE_SIZE``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from spyre_mlir.cache.store import Store
from spyre_mlir.errors import InputError
from spyre_mlir.sizes import read_size

PLACE, SIZE, OFF = "SPYRE_MLIR_CACHE", "SPYRE_MLIR_CACHE_SIZE", "off"
DEFAULT_SIZE = "1G"


def store_of(environment: Mapping[str, str]) -> Store | None:
    """Return the cache that the environment asks for; None if it is off.

    Args:
        environment: ``SPYRE_MLIR_CACHE`` is a directory, or ``off``; by default the user's directory for caches.
            ``SPYRE_MLIR_CACHE_SIZE`` is the bytes that all entries may take, such as 500M.

    Raises:
        InputError: the size is none.
    """
    place = environment.get(PLACE, "")
    if place.lower() == OFF:
        return None
    try:
        limit = read_size(environment.get(SIZE) or DEFAULT_SIZE)
    except ValueError as error:
        raise InputError(f"{SIZE}: {error}", hint=f"{SIZE}=500M") from error
    return Store(Path(place).expanduser() if place else _directory_of_user(), limit)


def _directory_of_user() -> Path:
    from platformdirs import user_cache_path

    return user_cache_path("spyre-mlir", appauthor=False)
