"""All ranks in one process: one runs at a time, and collectives are what the op table says they mean.

Ranks run in their order, each until it calls a collective or ends; a collective is computed as soon as all ranks of its
group have called it. So a run repeats to the bit, and a rank that waits for nobody is noticed at once.

Decision: docs/decisions/0154-all-ranks-in-one-process.md
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar, cast

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type

from spyre_mlir.dialects.host_call import HostCall, OperandSlot
from spyre_mlir.errors import ConstraintError, FaultKind, MachineFault, SpyreError
from spyre_mlir.machine.arrays import Array
from spyre_mlir.machine.ktdp.values import dtype_of
from spyre_mlir.ops import ATEN
from spyre_mlir.ops.native.collectives import RANKS
from spyre_mlir.ops.parameters import ArgKind

T = TypeVar("T")
_FLOATS = Float16Type, BFloat16Type, Float32Type
_ORDER = "every rank of a group calls the same collectives in the same order; look at both places"


class _StoppedError(Exception):
    """Another rank has failed, or all of them wait."""


@dataclass(frozen=True)
class _Call:
    """A collective that a rank has called."""

    call: HostCall
    operand: Array
    wide: bool

    @property
    def in_its_type(self) -> Array:
        """The operand in the type that a process group would exchange it in."""
        element = self.call.operands[0].get_element_type()
        return (
            self.operand.astype(dtype_of(element)) if isinstance(element, _FLOATS) and not self.wide else self.operand
        )

    @property
    def group(self) -> tuple[int, ...]:
        return tuple(cast("Sequence[int]", self.call.arguments.get(RANKS, ())))

    @property
    def form(self) -> Mapping[str, object]:
        """Facts that are the same on all ranks of a group."""
        entry = ATEN.find(self.call.overload)
        lists = {p.name for p in entry.params if p.kind is ArgKind.INTS} - {RANKS} if entry is not None else set[str]()
        said = {name: value for name, value in self.call.arguments.items() if name not in lists}
        tensors = {name for name, value in said.items() if isinstance(value, OperandSlot)}
        type_ = self.call.operands[0]
        rows = "?" if lists else self.operand.shape[:1]
        form = {name: value for name, value in said.items() if name not in tensors}
        return (
            form
            | {"collective": self.call.overload, "shape": (rows, *self.operand.shape[1:])}
            | {"element type": str(type_.get_element_type())}
        )


@dataclass
class _Rank:
    """A rank that runs, waits in a collective, or has ended."""

    number: int
    turn: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    waits: _Call | None = None
    result: Array | None = None
    ended: bool = False
    value: Any = None
    error: BaseException | None = None


@dataclass
class Meeting:
    """The ranks of a run.

    Attributes:
        count: how many ranks there are.
    """

    count: int
    _back: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    _stopped: bool = False

    def run(self, ranks: Sequence[Callable[[], T]]) -> list[T]:
        """Run a function on every rank, and return the results, rank by rank.

        Raises:
            MachineFault: ranks of a group call different collectives, or all ranks that are left wait.
            SpyreError: of the first rank that fails, with its number.
        """
        assert len(ranks) == self.count
        self._ranks = [_Rank(number) for number in range(self.count)]
        for rank, function in zip(self._ranks, ranks, strict=True):
            threading.Thread(target=self._of_rank, args=(rank, function), daemon=True).start()
        try:
            for rank in self._ranks:
                self._resume(rank)
            while any(rank.waits is not None for rank in self._ranks):
                for rank in self._completed():
                    self._resume(rank)
        finally:
            self._stop()
        return [cast(T, rank.value) for rank in self._ranks]

    def exchange(self, number: int, call: HostCall, operands: Sequence[Array], wide: bool) -> list[Array]:
        """Return the result of a collective for the rank that calls it, once all others have called it."""
        rank = self._ranks[number]
        rank.waits = _Call(call, operands[0], wide)
        self._back.release()
        rank.turn.acquire()
        if self._stopped:
            raise _StoppedError
        assert rank.result is not None
        return [rank.result]

    def _of_rank(self, rank: _Rank, function: Callable[[], object]) -> None:
        rank.turn.acquire()
        _HERE.set((self, rank.number))
        try:
            if not self._stopped:
                rank.value = function()
        except _StoppedError:
            pass
        except BaseException as error:  # noqa: BLE001 - `_resume` raises it in the thread that started the rank
            rank.error = error
        rank.ended = True
        self._back.release()

    def _resume(self, rank: _Rank) -> None:
        """Let a rank run until it waits or ends.

        Raises:
            SpyreError: the rank failed.
        """
        rank.waits = None
        rank.turn.release()
        self._back.acquire()
        if rank.error is not None:
            if isinstance(rank.error, SpyreError):
                rank.error.message = f"rank {rank.number}: {rank.error.message}"
            raise rank.error

    def _stop(self) -> None:
        """Ends the ranks that wait."""
        self._stopped = True
        for rank in self._ranks:
            if not rank.ended:
                rank.turn.release()
                self._back.acquire()

    def _completed(self) -> list[_Rank]:
        """The ranks of the first group that has met, with their results."""
        for rank in self._ranks:
            group = rank.waits.group or tuple(range(self.count)) if rank.waits is not None else ()
            members = [self._ranks[n] for n in group if n < self.count]
            calls = [member.waits for member in members if member.waits is not None]
            if group and len(calls) == len(group) and all(c.group == calls[0].group for c in calls):
                for member, result in zip(members, _results(group, calls), strict=True):
                    member.result = result
                return members
        raise self._deadlock()

    def _deadlock(self) -> MachineFault:
        lines = [f"  rank {r.number} {_state(r)}" for r in self._ranks]
        first = next(r.waits for r in self._ranks if r.waits is not None)
        return MachineFault(
            FaultKind.DEADLOCK,
            "no group of ranks is complete, and no rank goes on\n" + "\n".join(lines),
            where=first.call.where,
            hint=_ORDER,
        )


# The meeting that the current thread has part in, and as which rank.
_HERE: ContextVar[tuple[Meeting, int] | None] = ContextVar("meeting", default=None)


def here() -> Callable[[HostCall, Sequence[Array], bool], list[Array]] | None:
    """Return what computes collectives of the current thread, if it is a rank of a meeting; None if it is not.

    It takes a call, its operands, and whether to compute in double precision whatever the types say.
    """
    found = _HERE.get()
    if found is None:
        return None
    meeting, number = found
    return partial(meeting.exchange, number)


def _state(rank: _Rank) -> str:
    if rank.waits is None:
        return "has ended"
    waits = rank.waits
    return f"waits for ranks {', '.join(map(str, waits.group)) or 'of all cards'} in {waits.call.where}"


def _results(group: Sequence[int], calls: Sequence[_Call]) -> list[Array]:
    """The result of every rank.

    Raises:
        MachineFault: the ranks call different collectives.
    """
    first = calls[0]
    for number, other in zip(group[1:], calls[1:], strict=True):
        differ = [name for name in first.form if first.form[name] != other.form.get(name)]
        if differ:
            both = "; ".join(
                f"rank {n} has {', '.join(f'{name} {c.form.get(name)}' for name in differ)} in {c.call.where}"
                for n, c in ((group[0], first), (number, other))
            )
            raise MachineFault(
                FaultKind.MISMATCHED_COLLECTIVE,
                f"ranks meet in different calls: {both}",
                where=first.call.where,
                hint=_ORDER,
            )
    entry = ATEN.find(first.call.overload)
    assert entry is not None
    tensor = next(p.name for p in entry.params if p.is_tensor)
    arguments: dict[str, object] = {p.name: p.default for p in entry.params if not p.is_tensor}
    for param in entry.params:
        if param.kind is ArgKind.INTS and param.name != RANKS:
            arguments[param.name] = [c.call.arguments.get(param.name, param.default) for c in calls]
        elif param.name in first.call.arguments and param.name != tensor:
            arguments[param.name] = first.call.arguments[param.name]
    try:
        results = entry.meaning([c.in_its_type for c in calls], **arguments)
        return [result.astype(c.operand.dtype) for result, c in zip(results, calls, strict=True)]
    except ConstraintError as error:
        raise MachineFault(
            FaultKind.MISMATCHED_COLLECTIVE, error.message, where=first.call.where, hint=_ORDER
        ) from error


__all__ = ["Meeting", "here"]
