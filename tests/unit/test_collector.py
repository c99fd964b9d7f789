"""Pauses of the cycle collector: none inside, as before behind."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from spyre_mlir import collector
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


class Ring:
    """An object that only the collector frees."""

    def __init__(self) -> None:
        self.own = self


@pytest.fixture
def collections(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The generation of every collection, where nothing is frozen."""
    monkeypatch.setattr(collector._pauses, "frozen", False)
    generations: list[int] = []
    gc.unfreeze()

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            generations.append(info["generation"])

    gc.collect()
    gc.callbacks.append(note)
    yield generations
    gc.callbacks.remove(note)
    gc.freeze()  # as the tests' own set-up left it


def test_what_a_block_made_is_looked_at_with_the_old_objects(collections: list[int]) -> None:
    with paused_collector():
        made = [[number] for number in range(10_000)]
        ring = weakref.ref(Ring())
    assert collections == []
    gc.collect(1)
    assert ring() is not None
    gc.collect()
    assert ring() is None
    assert len(made) == 10_000


def test_a_block_ends_with_a_look_at_everything_when_much_has_piled_up(
    collections: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collector, "_MOST_UNSEEN", 15_000)
    made = list[list[int]]()
    rings = list[weakref.ref[Ring]]()
    for _ in range(2):
        with paused_collector():
            made += [[number] for number in range(10_000)]
            rings.append(weakref.ref(Ring()))
    assert collections == [2]
    assert [ring() for ring in rings] == [None, None]


def test_what_the_caller_has_frozen_stays_frozen_and_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector._pauses, "frozen", False)
    gc.freeze()
    frozen, counted = gc.get_freeze_count(), list[int]()

    def count() -> int:
        counted.append(frozen)
        return frozen

    with monkeypatch.context() as patched:
        patched.setattr(gc, "get_freeze_count", count)
        for _ in range(3):
            with paused_collector():
                made = [[number] for number in range(10_000)]
    assert gc.get_freeze_count() == frozen > 0
    assert len(counted) == 1
    assert len(made) == 10_000
