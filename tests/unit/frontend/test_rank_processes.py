"""Processes that have ended at work, and functions that are interrupted for it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch.distributed as dist

from spyre_mlir.frontend import rank_processes
from spyre_mlir.frontend.rank_processes import Process, RankEndedError, Workers, at_work, unless_interrupted

KEY = "spyre_mlir/at_work/1"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rank_processes, "_POLL_SECONDS", 0.01)


@pytest.fixture
def own() -> Process:
    found = Process.own()
    assert found is not None, "tests run on Linux"
    return found


@pytest.fixture
def other(own: Process) -> Iterator[tuple[Process, subprocess.Popen[bytes]]]:
    """A process that sleeps, which nobody waits for."""
    sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    yield Process(own.machine, sleeper.pid, stat(sleeper)[19]), sleeper
    sleeper.kill()
    sleeper.wait()


Other = tuple[Process, "subprocess.Popen[bytes]"]


def stat(process: subprocess.Popen[bytes]) -> list[str]:
    return Path(f"/proc/{process.pid}/stat").read_text().rpartition(") ")[2].split(" ")


def gone(sleeper: subprocess.Popen[bytes]) -> None:
    sleeper.kill()
    until = time.monotonic() + 30
    while stat(sleeper)[0] != "Z" and time.monotonic() < until:
        time.sleep(0.01)


def test_a_process_is_read_as_it_is_written(own: Process) -> None:
    assert Process.of(str(own)) == own


def test_a_process_that_is_there_has_not_ended(own: Process, other: Other) -> None:
    assert not own.has_ended(own)
    assert not other[0].has_ended(own)


def test_a_killed_process_has_ended_before_its_parent_asks_and_after(own: Process, other: Other) -> None:
    process, sleeper = other
    gone(sleeper)
    assert process.has_ended(own)
    sleeper.wait()
    assert process.has_ended(own)


def test_another_process_may_have_its_number(own: Process) -> None:
    assert replace(own, started="1").has_ended(own)


def test_of_other_machines_nothing_is_known(own: Process) -> None:
    assert not Process("elsewhere/pid:[1]", 2**22 + 1, "1").has_ended(own)


def test_a_rank_that_ends_at_work_is_named(other: Other) -> None:
    process, sleeper = other
    store = dist.HashStore()
    workers = Workers(store, (1, 2))
    store.set(KEY, str(process))
    assert workers.ended() is None
    gone(sleeper)
    assert workers.ended() == f"rank 1 has ended in the middle of its work (process {sleeper.pid})"


class GoneStore:
    """A store that goes away with its rank."""

    def __init__(self) -> None:
        self.text: str | None = None

    def set(self, key: str, value: str) -> None:
        raise dist.DistNetworkError(f"{key}: {value}")

    def get(self, key: str) -> bytes:
        return (self.text or "").encode()

    def add(self, key: str, amount: int) -> int:
        raise dist.DistNetworkError(f"{key}: {amount}")

    def check(self, keys: list[str]) -> bool:
        if self.text is None:
            raise dist.DistNetworkError(str(keys))
        return True


def test_a_rank_that_ends_after_its_work_is_not(other: Other) -> None:
    """Also if it says so after another has asked, and before that looks for its process."""
    process, sleeper = other
    said = iter([str(process), str(process), "-"])

    class Asked(GoneStore):
        def get(self, key: str) -> bytes:
            self.text = next(said)
            return super().get(key)

    store = Asked()
    store.text = "-"
    workers = Workers(store, (1,))
    assert workers.ended() is None
    gone(sleeper)
    assert workers.ended() is None
    assert next(said, None) is None, "asked once more"


def test_work_is_told_while_it_lasts(own: Process) -> None:
    store = dist.HashStore()
    with suppress(ValueError), at_work(store, 1):
        assert Process.of(store.get(KEY).decode()) == own
        raise ValueError
    assert store.get(KEY) == b"-"


def test_a_store_that_is_gone(other: Other) -> None:
    """Work goes on, and the rank that had the store is named by what it said last."""
    process, sleeper = other
    store = GoneStore()
    workers = Workers(store, (1,))
    with at_work(store, 0):
        assert workers.ended() is None
    store.text = str(process)
    assert workers.ended() is None
    store.text = None
    gone(sleeper)
    assert "rank 1 has ended" in str(workers.ended())


def work_until(seconds: float) -> str:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        sum(range(100))
    return "done"


def soon() -> Callable[[], str | None]:
    """Finds nothing at first."""
    looks = iter([None])
    return lambda: next(looks, "rank 1 has ended")


def test_work_that_is_done_is_returned() -> None:
    assert unless_interrupted(lambda: work_until(0.05), lambda: None) == "done"


def test_work_does_not_begin_where_a_rank_has_ended() -> None:
    """Work that is shorter than the time between two looks would never notice."""
    begun = list[str]()
    with pytest.raises(RankEndedError, match=r"^rank 1 has ended$"):
        unless_interrupted(lambda: begun.append("begun"), lambda: "rank 1 has ended")
    assert begun == []


def test_work_is_interrupted() -> None:
    started = time.monotonic()
    with pytest.raises(RankEndedError, match=r"^rank 1 has ended$"):
        unless_interrupted(lambda: work_until(30), soon())
    assert time.monotonic() - started < 15


def test_an_interrupt_that_is_taken_for_something_else_is_told_in_the_end() -> None:
    def stubborn() -> str:
        try:
            return work_until(30)
        except BaseException:  # noqa: BLE001 - as handlers of other packages may
            return "done"

    with pytest.raises(RankEndedError, match="rank 1 has ended"):
        unless_interrupted(stubborn, soon())


def test_errors_of_the_work_are_its_own() -> None:
    def refuses() -> str:
        raise ValueError("refused")

    with pytest.raises(ValueError, match="refused"):
        unless_interrupted(refuses, lambda: None)


def test_no_interrupt_comes_after_the_work() -> None:
    """However close together the two are."""
    for number in range(100):
        with suppress(RankEndedError):
            unless_interrupted(partial(work_until, 0.01 + number * 1e-5), soon())
    assert work_until(0.2) == "done"
