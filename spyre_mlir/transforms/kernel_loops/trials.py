"""Loops around groups of kernels as they are tried: what a trial is, and what of the kernels decides about it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Hashable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from xdsl.ir import SSAValue

from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.kernel_loop import buffer_behind
from spyre_mlir.planning.trips import TripSpan
from spyre_mlir.transforms.kernel_loops.row_groups import RowGroup
from spyre_mlir.transforms.kernel_plans.kernel_choices import shape_of
from spyre_mlir.transforms.kernel_plans.plan_record import TriedLoop
from spyre_mlir.transforms.utils.hints import hinted_place

CLEAR_GAIN = 0.05  # part of the time that a loop must save
_NONE: Mapping[kernel.KernelOp, Collection[SSAValue]] = MappingProxyType({})


@dataclass(frozen=True)
class InnerLoop:
    """A loop inside of another one: its trips, and its names in all kernels."""

    trips: int
    loops: Sequence[str]


@dataclass(frozen=True)
class Trial:
    """A group of kernels in one loop or two.

    Attributes:
        group: the kernels.
        spans: the blocks that the loops around them go through, one loop after the other.
        inner: the loop inside of it, if there is one.
        usual_us: predicted time without loops.
        least_us: a time that the loops do not beat.
        wide_us: the part of `usual_us` that stands for widened weights in device memory.
        held: per kernel, operands that the scratchpads may hold in a trip, as long as `least_us` is not the time that
            follows from them; see `TimeFloors.priced`.
    """

    group: RowGroup
    spans: tuple[TripSpan, ...]
    inner: InnerLoop | None
    usual_us: float
    least_us: float
    wide_us: float = 0.0
    held: tuple[frozenset[int], ...] = ()

    @property
    def launches(self) -> int:
        """How often kernels run: each of them in every trip."""
        within = 1 if self.inner is None else self.inner.trips
        return len(self.group.ops) * within * sum(span.trips for span in self.spans)

    def identity(self, is_widened: Callable[[SSAValue], bool]) -> Hashable:
        """Return what the predicted time of the loops follows from: the same for equal kernels elsewhere.

        Args:
            is_widened: whether a buffer has a weight of few bits in a wider format.
        """
        group, numbers = self.group, dict[SSAValue, int]()
        internal = set(group.internal())

        def facts(value: SSAValue) -> Hashable:
            places = [numbers.setdefault(v, len(numbers)) for v in (value, buffer_behind(value))]
            return *places, type(value.owner), hinted_place(value), is_widened(value), value in internal

        kernels = [
            (shape_of(op, dict.fromkeys(op.space.extents, 1)), op.function_name, loop, rows, *map(facts, op.operands))
            for op, loop, rows in zip(group.ops, group.loops, group.rows, strict=True)
        ]
        inner = None if self.inner is None else (self.inner.trips, *self.inner.loops)
        return tuple(kernels), self.spans, inner

    def told(self, us: float | None = None, most_us: float | None = None) -> TriedLoop:
        """Return it for the record, with its predicted time if it was built."""
        name = self.group.loops[0]
        loops = [(_told(name, span), span.trips) for span in self.spans]
        loops += [] if self.inner is None else [(self.inner.loops[0], self.inner.trips)]
        cuts = self._cuts() if len(self.spans) == 1 else ()
        return TriedLoop(tuple(self.group.ops), tuple(loops), self.usual_us, self.least_us, us, most_us, cuts=cuts)

    def _cuts(self) -> tuple[Mapping[str, int], ...]:
        """Trips by loop of each kernel."""
        trips, inner = self.spans[0].trips, self.inner
        if inner is None:
            return tuple([{name: trips} for name in self.group.loops])
        return tuple([{n: trips, i: inner.trips} for n, i in zip(self.group.loops, inner.loops, strict=True)])


def _told(name: str, span: TripSpan) -> str:
    """What a loop over blocks of another one is called."""
    place = "" if span.start == 0 else f" from piece {span.start}"
    return f"{name}{place}{'' if span.copies == 1 else f', {span.copies} copies'}"


def clear_gain_us(usual_us: float) -> float:
    """Return the time that loops must save of another."""
    return CLEAR_GAIN * usual_us


def local_operands(ops: Sequence[kernel.KernelOp], held: Container[SSAValue]) -> list[frozenset[int]]:
    """Operands of each kernel that are among these buffers."""
    return [frozenset([n for n, value in enumerate(op.operands) if value in held]) for op in ops]


def cuts(group: RowGroup, stored_wide: Mapping[kernel.KernelOp, Collection[SSAValue]] = _NONE) -> list[int]:
    """Where a group may end: at its end, before its sum, around each product, and before the conversion of a weight.

    Args:
        group: the kernels.
        stored_wide: by kernel, the widened weights that are not to be in device memory.
    """
    ops, whole, facts = group.ops, len(group.ops), [group.facts(op) for op in group.ops]
    inner = (n for n in range(2, whole) if facts[n].is_product or facts[n - 1].is_product)
    stored = (n for n in range(1, whole) if ops[n] in stored_wide and facts[n].operands[-1] in stored_wide[ops[n]])
    before = {*stored, *(n for n in range(1, whole) if facts[n].widens)}
    return sorted({whole, *inner, *before, *([whole - 1] if group.is_summed else [])})


__all__ = [
    "CLEAR_GAIN",
    "InnerLoop",
    "Trial",
    "clear_gain_us",
    "cuts",
    "local_operands",
]
