"""Waiting for ranks that fail, and for ranks that do not."""

from __future__ import annotations

from threading import Event, Timer

import pytest
import torch.distributed as dist

from spyre_mlir.frontend import rank_failures
from spyre_mlir.frontend.rank_failures import come, not_come, report, unless_ranks_fail


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rank_failures, "GRACE_SECONDS", 0.2)
    monkeypatch.setattr(rank_failures, "_POLL_SECONDS", 0.01)


def test_what_ends_is_returned_and_what_fails_is_raised() -> None:
    store = dist.HashStore()
    assert unless_ranks_fail(lambda: 7, store, 1) == 7

    def fails() -> int:
        raise ValueError("refused")

    with pytest.raises(ValueError, match="refused"):
        unless_ranks_fail(fails, store, 1)


def test_a_rank_that_waits_for_ever_is_told_who_failed() -> None:
    store, never = dist.HashStore(), Event()
    Timer(0.1, report, (store, 1, "rank 3 has failed in all_reduce")).start()
    with pytest.raises(RuntimeError, match=r"rank 3 has failed in all_reduce, and 0\.2 s later this rank still waited"):
        unless_ranks_fail(never.wait, store, 1)
    never.set()


def test_a_collective_before_the_failure_ends_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rank_failures, "GRACE_SECONDS", 60.0)
    store, ends = dist.HashStore(), Event()
    report(store, 1, "rank 3 has failed in all_reduce")
    Timer(0.3, ends.set).start()
    assert unless_ranks_fail(ends.wait, store, 1)


def test_slow_ranks_are_waited_for() -> None:
    ends = Event()
    Timer(0.6, ends.set).start()
    assert unless_ranks_fail(ends.wait, dist.HashStore(), 1)


class Gone:
    """A store whose rank has ended."""

    def set(self, key: str, value: str) -> None:
        raise dist.DistNetworkError(f"{key}: {value}")

    def get(self, key: str) -> bytes:
        raise dist.DistNetworkError(key)

    def add(self, key: str, amount: int) -> int:
        raise dist.DistNetworkError(f"{key}: {amount}")

    def check(self, keys: list[str]) -> bool:
        raise dist.DistNetworkError(str(keys))


def test_a_store_that_is_gone() -> None:
    report(Gone(), 1, "nobody hears this")
    never = Event()
    with pytest.raises(RuntimeError, match="the store of the process group is gone, and"):
        unless_ranks_fail(never.wait, Gone(), 1)
    never.set()
    assert not_come(Gone(), (0, 1), 1) == []


def test_the_first_note_stays() -> None:
    store, never = dist.HashStore(), Event()
    report(store, 1, "rank 1 has failed")
    report(store, 1, "rank 2 has failed")
    with pytest.raises(RuntimeError, match="rank 1 has failed"):
        unless_ranks_fail(never.wait, store, 1)
    never.set()


def test_a_failure_is_one_of_its_collective() -> None:
    """Slow ranks are waited for in the next one, which all of them have come to."""
    store, ends = dist.HashStore(), Event()
    report(store, 1, "rank 1 has failed in all_reduce")
    Timer(1.0, ends.set).start()
    assert unless_ranks_fail(ends.wait, store, 2)


def test_ranks_that_have_not_come() -> None:
    store = dist.HashStore()
    assert [come(store, 0), come(store, 0), come(store, 2)] == [1, 2, 1]
    assert not_come(store, (0, 1, 2), 1) == [1]
    assert not_come(store, (0, 1, 2), 2) == [1, 2]
    assert not_come(store, (0, 2), 1) == []


def test_a_rank_that_has_ended_is_told_to_those_that_wait() -> None:
    store, never = dist.HashStore(), Event()
    with pytest.raises(RuntimeError, match=r"rank 3 has ended, and 0\.2 s later this rank still waited"):
        unless_ranks_fail(never.wait, store, 1, lambda: "rank 3 has ended")
    never.set()
