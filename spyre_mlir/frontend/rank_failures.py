"""Failures of ranks, told through the store of a process group: a rank that waits for one that failed does not hang.

Ranks count the collectives of a group that they come to.

A rank that is killed closes its connections, which ends the collective of those that were exchanging with it. The
others of the group wait for these, and would until the group's timeout, half an hour by default, if these stay alive.
So a rank whose collective ended in an error leaves a note about it in the store, and ranks that wait in the same
collective look for one. Later ones are free of it: a program may catch the error and go on.

Decision: docs/decisions/0153-collectives-are-steps-of-the-host.md
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent import futures
from contextlib import suppress
from threading import Event, Thread
from typing import Any, Protocol, TypeVar

T = TypeVar("T")

GRACE_SECONDS = 3.0  # that a collective may go on after a rank has failed: it may be the one before, and end well
_POLL_SECONDS = 0.5
_CAME, _FAILED = "spyre_mlir/came", "spyre_mlir/failed"


class GroupStore(Protocol):
    """The part of `torch.distributed.Store` that is used."""

    def set(self, key: str, value: str, /) -> None:
        """Sets the value of a key."""

    def get(self, key: str, /) -> bytes:
        """Returns the value of a key; waits until it is set."""
        ...

    def add(self, key: str, amount: int, /) -> int:
        """Adds to the number of a key, which is 0 before it is set, and returns it."""
        ...

    def check(self, keys: list[str], /) -> bool:
        """Returns whether the keys are set."""
        ...


def come(store: GroupStore, rank: int) -> int:
    """Note that a rank has come to the next collective of a group, and return its number, from 1."""
    return store.add(f"{_CAME}/{rank}", 1)


def not_come(store: GroupStore, ranks: Sequence[int], number: int) -> list[int]:
    """Return the ranks that have not come to a collective; none if the store is gone."""
    with suppress(RuntimeError):
        return [rank for rank in ranks if _count(store, f"{_CAME}/{rank}") < number]
    return []


def _count(store: GroupStore, key: str) -> int:
    return int(store.get(key)) if store.check([key]) else 0


def report(store: GroupStore, number: int, text: str) -> None:
    """Tell the other ranks of a group that this one failed in a collective.

    The first note stays, and a store that is gone has none.
    """
    with suppress(RuntimeError):
        if not store.check([key := f"{_FAILED}/{number}"]):
            store.set(key, text)


def unless_ranks_fail(
    wait: Callable[[], T], store: GroupStore, number: int, look: Callable[[], str | None] = lambda: None
) -> T:
    """Return what a function gives that waits for other ranks in a collective.

    Args:
        wait: runs in a thread of its own, which is left behind if nothing ends it.
        store: of the process group.
        number: of the collective.
        look: returns which rank has ended, or None.

    Raises:
        RuntimeError: another rank has failed in it or has ended, or the store is gone, and the function did not return
            soon after; or the function raised it.
    """
    done = _in_a_thread(wait)
    if not futures.wait([done], timeout=_POLL_SECONDS).done:
        over = Event()
        told = _in_a_thread(lambda: _next_note(store, number, look, over))  # a store may hang, as its rank may
        both: list[futures.Future[Any]] = [done, told]
        futures.wait(both, return_when=futures.FIRST_COMPLETED)
        over.set()
        if not futures.wait([done], timeout=GRACE_SECONDS).done:
            raise RuntimeError(f"{told.result()}, and {GRACE_SECONDS:g} s later this rank still waited")
    return done.result()


def _next_note(store: GroupStore, number: int, look: Callable[[], str | None], over: Event) -> str:
    """What the first rank that failed says, or is said of the first that has ended, as soon as it does or has."""
    while not over.wait(_POLL_SECONDS):
        try:
            if store.check([key := f"{_FAILED}/{number}"]):
                return store.get(key).decode()
            if (ended := look()) is not None:
                return ended
        except RuntimeError:
            return "the store of the process group is gone"
    return ""


def _in_a_thread(function: Callable[[], T]) -> futures.Future[T]:
    """A future of a daemon thread: those of an executor would keep the process from ending."""
    future = futures.Future[T]()

    def run() -> None:
        try:
            future.set_result(function())
        except BaseException as error:  # noqa: BLE001 - `Future.result` raises it in the caller's thread
            future.set_exception(error)

    Thread(target=run, daemon=True).start()
    return future


__all__ = ["GRACE_SECONDS", "GroupStore", "come", "not_come", "report", "unless_ranks_fail"]
