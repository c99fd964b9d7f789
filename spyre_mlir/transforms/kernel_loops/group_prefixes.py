"""The first kernels of a group, for every place where it may end: what they hold, and times that no loops beat.

A group of many products may end in many places, and what its first kernels hold differs little from one place to the
next. So it is carried along, and the work for all places together grows with the kernels of the group.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from itertools import accumulate
from math import gcd

from xdsl.ir import Operation, SSAValue

from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.hw.spec import STICK_BYTES
from spyre_mlir.transforms.kernel_loops.row_groups import RowGroup
from spyre_mlir.transforms.kernel_loops.row_loops import row_loops
from spyre_mlir.transforms.kernel_loops.time_floors import TimeFloors
from spyre_mlir.transforms.kernel_loops.trials import local_operands


@dataclass
class GroupPrefix:
    """The first kernels of a group, to which more are added.

    Attributes:
        group: all kernels.
        operands: of each of them, the result last.
        floors: lower bounds of times.
        count: how many kernels it has.
        internal: buffers used only by these kernels, written before they are read.
        pieces: blocks of rows that can be told apart.
        held: per kernel, operands that the scratchpads may hold in a trip: internal ones, copies for several readers.
    """

    group: RowGroup
    floors: TimeFloors
    count: int = 0
    internal: set[SSAValue] = field(default_factory=set[SSAValue])
    pieces: int = 0
    held: list[frozenset[int]] = field(default_factory=list[frozenset[int]])
    operands: list[tuple[SSAValue, ...]] = field(init=False)
    _ends: dict[int, list[SSAValue]] = field(init=False)  # by its last kernel, what is internal from there on
    _users: dict[SSAValue, list[int]] = field(default_factory=dict[SSAValue, "list[int]"])
    _reads: Counter[SSAValue] = field(default_factory=Counter[SSAValue])
    _relaid: set[SSAValue] = field(default_factory=set[SSAValue])
    _asked: set[SSAValue] = field(default_factory=set[SSAValue])
    _changes: list[int] = field(init=False)  # of the bytes in use, by kernel
    _kept: set[SSAValue] = field(default_factory=set[SSAValue])  # that may stay in the scratchpads throughout
    _may: set[SSAValue] = field(default_factory=set[SSAValue])  # that they may hold in a trip
    _floors_us: list[float] = field(default_factory=list[float])
    _inner: list[_OtherLoop] | None = None

    def __post_init__(self) -> None:
        ops = self.group.ops
        self.operands = [self.group.facts(op).operands for op in ops]
        self._changes = [0] * (len(ops) + 1)
        places = dict[Operation, int](zip(ops, range(len(ops)), strict=True))
        self._ends = {}
        for value in self.group.internal():
            last = max(places[use.operation] for use in value.uses)
            self._ends.setdefault(last, []).append(value)

    def extend(self, count: int) -> None:
        """Have the first `count` kernels, no fewer than before."""
        touched = set[SSAValue]()
        for number in range(self.count, count):
            self._append(number)
            touched.update(self.operands[number])
        new, self.count = range(self.count, count), count
        totals = self.group.totals if self.is_summed else set[SSAValue]()
        stale = set(new)
        for value in touched:
            inside = value in self.internal
            kept = inside or value in totals
            may = value in totals or (value not in self._relaid if inside else self._reads[value] > 1)
            if _put(self._kept, value, kept) | _put(self._may, value, may):
                stale.update(self._users[value])
        for number in stale:
            self._refresh(number)

    def _append(self, number: int) -> None:
        op, operands = self.group.ops[number], self.operands[number]
        self.pieces = gcd(self.pieces, self.group.pieces_at(number))
        facts = self.group.facts(op)
        for value in facts.distinct:
            self._users.setdefault(value, []).append(number)
        self._asked.update(facts.asked)
        for value in facts.read:
            self._reads[value] += 1
        if isinstance(op, kernel.RestickifyOp):
            self._relaid.update(operands)
        for value in self._ends.get(number, ()):
            self.internal.add(value)
            size = kernel.device_tensor(value).sticks * STICK_BYTES
            self._changes[self._users[value][0]] += size
            self._changes[number + 1] -= size
        self.held.append(frozenset())
        self._floors_us.append(0.0)

    def _refresh(self, number: int) -> None:
        """Bring what is known of a kernel up to date."""
        op, operands = self.group.ops[number], self.operands[number]
        kept = frozenset([n for n, value in enumerate(operands) if value in self._kept])
        self._floors_us[number] = self.floors.kernel_us(op, kept)
        self.held[number] = frozenset([n for n, value in enumerate(operands) if value in self._may])

    @property
    def is_summed(self) -> bool:
        """Return whether the last of the kernels sums over the rows."""
        return self.count == len(self.group.ops) and self.group.is_summed

    def held_bytes(self) -> int:
        """Return the most bytes of internal buffers that are in use at one time, over all rows."""
        return max(accumulate(self._changes[: self.count + 1]))

    def floor_us(self) -> float:
        """Return the least time in any loops, whatever stays in the scratchpads."""
        return sum(self._floors_us)

    def lost_us(self, held: Set[SSAValue]) -> float:
        """Return the time that kernels outside lose, as loops write to device memory what they could find elsewhere.

        Args:
            held: buffers in the scratchpads without loops.
        """
        inside, totals = self.group.ops[: self.count], self.group.totals if self.is_summed else ()
        results = dict.fromkeys([operands[-1] for operands in self.operands[: self.count]])
        written = [v for v in results if v in held and v not in self.internal and v not in totals]
        readers = dict.fromkeys([use.operation for value in written for use in value.uses])
        outside = [op for op in readers if isinstance(op, kernel.KernelOp) and op not in inside]
        return sum(self._held_us(op, held - set(written)) - self._held_us(op, held) for op in outside)

    def _held_us(self, op: kernel.KernelOp, held: Set[SSAValue]) -> float:
        (local,) = local_operands([op], held)
        return self.floors.kernel_us(op, local)

    def is_asked_for_whole(self) -> bool:
        """Return whether loops would take a buffer in parts that a hint asks for."""
        return bool(self._asked - self.internal)

    def inner_loops(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the other loops that all of the kernels share: the pieces of each, and its name in every kernel."""
        if self._inner is None:
            self._inner = [_OtherLoop.of(self.group, name) for name in row_loops(self.group.ops[0])]
        for other in self._inner:
            if other.loops[0] != self.group.loops[0] and len(other.loops) >= self.count:
                yield other.pieces[self.count - 1], other.loops[: self.count]


@dataclass(frozen=True)
class _OtherLoop:
    """Another loop that the first kernels of a group share: its name in each, and the pieces of all up to each."""

    loops: list[str]
    pieces: list[int]

    @staticmethod
    def of(group: RowGroup, name: str) -> _OtherLoop:
        first, *others = group.ops
        found = RowGroup(known=group.known)
        found.add(first, name, row_loops(first)[name])
        for op in others if name != group.loops[0] else ():
            if not found.take(op):
                break
        each = [found.pieces_at(number) for number in range(len(found.ops))]
        return _OtherLoop(found.loops, list(accumulate(each, gcd)))


def _put(values: set[SSAValue], value: SSAValue, present: bool) -> bool:
    """Have a value in a set or not; return whether that is new."""
    if (value in values) == present:
        return False
    (values.add if present else values.discard)(value)
    return True


__all__ = ["GroupPrefix"]
