"""Place and size of the cache, as the environment says them."""

from __future__ import annotations

from pathlib import Path

import platformdirs
import pytest

from spyre_mlir.cache.settings import store_of
from spyre_mlir.cache.store import Store
from spyre_mlir.errors import InputError


def test_by_default_it_is_the_users_and_a_gigabyte() -> None:
    place = platformdirs.user_cache_path("spyre-mlir", appauthor=False)
    for environment in ({}, {"SPYRE_MLIR_CACHE": "", "SPYRE_MLIR_CACHE_SIZE": ""}):
        assert store_of(environment) == Store(place, 1 << 30)


@pytest.mark.parametrize("word", ["off", "OFF"])
def test_it_can_be_off(word: str) -> None:
    assert store_of({"SPYRE_MLIR_CACHE": word, "SPYRE_MLIR_CACHE_SIZE": "none"}) is None


def test_a_directory_and_a_size() -> None:
    asked = {"SPYRE_MLIR_CACHE": "~/a", "SPYRE_MLIR_CACHE_SIZE": "2M"}
    assert store_of(asked) == Store(Path.home() / "a", 2 << 20)


def test_a_size_that_is_none_is_refused() -> None:
    with pytest.raises(InputError, match="SPYRE_MLIR_CACHE_SIZE: 'big' is no size such as 800M or 16G"):
        store_of({"SPYRE_MLIR_CACHE_SIZE": "big"})
