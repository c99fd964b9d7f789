"""Processes of ranks at work: ranks that compile notice that one was killed which compiled or ran a program.

They exchange nothing, so that no connection tells them. A rank says in the store of the process group which process
compiles or runs a program, until that is done, and the others look whether that process is still there.

Decision: docs/decisions/0190-compilations-end-with-their-ranks.md
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock, Thread, get_ident
from typing import Final, TypeVar

from spyre_mlir.frontend.rank_failures import GroupStore

T = TypeVar("T")

_POLL_SECONDS = 0.5
_AT_WORK, _NOBODY = "spyre_mlir/at_work", "-"
_PROC: Final = Path("/proc")


@dataclass(frozen=True)
class Process:
    """A process of a machine that is running, which no other is equal to.

    Attributes:
        machine: its boot, and the space of its numbers of processes.
        number: of the process.
        started: when it was, in ticks since the boot.
    """

    machine: str
    number: int
    started: str

    @classmethod
    def own(cls) -> Process | None:
        """This process; None on systems without ``/proc``."""
        with suppress(OSError):
            number = int((_PROC / "self").readlink().name)
            boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
            machine = f"{boot}/{(_PROC / 'self/ns/pid').readlink().name}"
            return cls(machine, number, _state_and_start(number)[1])
        return None

    @classmethod
    def of(cls, text: str) -> Process:
        """The process that `str` wrote."""
        machine, number, started = text.split()
        return cls(machine, int(number), started)

    def __str__(self) -> str:
        """One word for each of its parts."""
        return f"{self.machine} {self.number} {self.started}"

    def has_ended(self, seen_by: Process) -> bool:
        """Return whether it was on the machine of another process, and is there no more."""
        if self.machine != seen_by.machine:
            return False
        try:
            state, started = _state_and_start(self.number)
        except (FileNotFoundError, ProcessLookupError):
            return True
        return state in "ZX" or started != self.started  # its parent has not asked yet, or another has its number


def _state_and_start(number: int) -> tuple[str, str]:
    fields = (_PROC / str(number) / "stat").read_text().rpartition(")")[2].split()  # the name before may have anything
    return fields[0], fields[19]


@contextmanager
def at_work(store: GroupStore, rank: int) -> Generator[None]:
    """Say in the store that this process works for a rank, until the block ends."""
    own = Process.own()
    with suppress(RuntimeError):
        store.set(f"{_AT_WORK}/{rank}", _NOBODY if own is None else str(own))
    try:
        yield
    finally:
        with suppress(RuntimeError):
            store.set(f"{_AT_WORK}/{rank}", _NOBODY)


@dataclass
class Workers:
    """Processes of other ranks at work.

    Attributes:
        store: of the process group.
        ranks: that are looked at.
    """

    store: GroupStore
    ranks: Sequence[int]
    _known: dict[int, str] = field(default_factory=dict[int, str])

    def ended(self) -> str | None:
        """Return which rank's process has ended at work; None if none has."""
        own = Process.own()
        for rank in self.ranks:
            text = self._said(rank)
            # It may have done its work, and ended since: then it says so now.
            if own and text != _NOBODY and Process.of(text).has_ended(own) and self._said(rank) == text:
                return f"rank {rank} has ended in the middle of its work (process {Process.of(text).number})"
        return None

    def _said(self, rank: int) -> str:
        """What a rank says, or said when there was a store."""
        with suppress(RuntimeError):
            key = f"{_AT_WORK}/{rank}"
            self._known[rank] = self.store.get(key).decode() if self.store.check([key]) else _NOBODY
        return self._known.get(rank, _NOBODY)


def unless_interrupted(function: Callable[[], T], look: Callable[[], str | None]) -> T:
    """Return what a function gives, which is interrupted as soon as there is a reason.

    Args:
        function: runs in this thread.
        look: returns a reason, or None; runs at once, and again and again in a thread of its own.

    Raises:
        RankEndedError: there is a reason.
    """
    if (reason := look()) is not None:  # functions may be quicker than the thread looks
        raise RankEndedError(reason)
    watch = _Watch(look)
    try:
        try:
            watch.start()
            result = function()
        finally:
            watch.leave()
    except _InterruptError:
        raise RankEndedError(watch.reason) from None
    if watch.reason is not None:  # a handler of the function took the interrupt for something else
        raise RankEndedError(watch.reason)
    return result


class RankEndedError(Exception):
    """A rank has ended at work."""


class _InterruptError(BaseException):
    """Raised in a thread by another; no `Exception`, as handlers of those are about other things."""


@dataclass
class _Watch:
    """A thread that interrupts the one that made it, once."""

    look: Callable[[], str | None]
    reason: str | None = None
    _watched: int = field(default_factory=get_ident)
    _over: Event = field(default_factory=Event)
    _lock: Lock = field(default_factory=Lock)

    def start(self) -> None:
        """Begin to look."""
        Thread(target=self._run, daemon=True).start()  # a store may hang, as its rank may, and this with it

    def _run(self) -> None:
        while self.reason is None and not self._over.wait(_POLL_SECONDS):
            self.reason = self.look()
        with self._lock:
            if not self._over.is_set():
                _interrupt(self._watched, _InterruptError)

    def leave(self) -> None:
        """End the watch; an interrupt that is on its way comes before this returns."""
        with self._lock:
            self._over.set()


def _interrupt(thread: int, error: type[BaseException]) -> None:
    """Raise an error in another thread between two of its steps."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error))


__all__ = ["Process", "RankEndedError", "Workers", "at_work", "unless_interrupted"]
