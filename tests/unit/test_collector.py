"""Pauses of the cycle collector: none inside, as before behind."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from spyre_mlir.collector import paused_collector


@pytest.fixture(autouse=True)
def enabled() -> Iterator[None]:
    gc.enable()
    yield
    gc.enable()


def test_nothing_is_collected_inside_nested_blocks_and_afterwards_it_is() -> None:
    with paused_collector():
        with paused_collector():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_an_error_ends_the_pause() -> None:
    with pytest.raises(ValueError, match="stop"), paused_collector():
        raise ValueError("stop")
    assert gc.isenabled()


def test_whoever_switched_the_collector_off_finds_it_off() -> None:
    gc.disable()
    with paused_collector():
        pass
    assert not gc.isenabled()
