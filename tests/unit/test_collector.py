"""Pauses of the cycle collector: none inside, as before behind."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from collections.abc import Callable, Iterator

import pytest

from spyre_mlir import collector
from spyre_mlir.collector import paused_collector
from tests.paths import ROOT


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


def collections() -> list[int]:
    """The generation of every collection from now on."""
    generations: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            generations.append(info["generation"])

    gc.collect()
    gc.callbacks.append(note)
    return generations


def look_behind_a_block() -> None:
    found = collections()
    with paused_collector():
        made = [[number] for number in range(10_000)]
        ring = weakref.ref(Ring())
    assert found == []
    gc.collect(1)
    assert ring() is not None
    gc.collect()
    assert ring() is None
    assert len(made) == 10_000


def end_two_blocks_with_much_piled_up() -> None:
    collector._MOST_UNSEEN = 15_000
    found = collections()
    made = list[list[int]]()
    rings = list[weakref.ref[Ring]]()
    for _ in range(2):
        with paused_collector():
            made += [[number] for number in range(10_000)]
            rings.append(weakref.ref(Ring()))
    assert found == [2]
    assert [ring() for ring in rings] == [None, None]


def run_in_a_new_process(function: Callable[[], None]) -> None:
    """Run a function of this module where little is alive: to walk all objects of a test run takes seconds."""
    command = f"from {__name__} import {function.__name__} as run; run()"
    subprocess.run([sys.executable, "-W", "ignore", "-c", command], cwd=ROOT, check=True)


def test_what_a_block_made_is_looked_at_with_the_old_objects() -> None:
    run_in_a_new_process(look_behind_a_block)


def test_a_block_ends_with_a_look_at_everything_when_much_has_piled_up() -> None:
    run_in_a_new_process(end_two_blocks_with_much_piled_up)


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
    # Those that are freed in between are counted no more, as another thread may do it.
    assert 0 < gc.get_freeze_count() <= frozen
    assert len(counted) == 1
    assert len(made) == 10_000
