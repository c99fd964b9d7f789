"""Loops in the bundle function: `scf.for` around launches, and the addresses that advance from trip to trip.

An address in a loop is an `affine.apply` of the address in trip 0 and the induction variables; operands that advance
alike share one map. Unrolled, a loop leaves no trace: every trip has launches and addresses of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import scf
from xdsl.dialects.affine import ApplyOp
from xdsl.dialects.builtin import AffineMapAttr, IndexType
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from spyre_mlir.dialects.spyre.kernel import KernelOp
from spyre_mlir.dialects.spyre.static_loop import LoopBounds, loop_bounds

AddressSteps = tuple[
    tuple[SSAValue, int], ...
]  # induction variables of the kernel level, and the bytes each moves a start by
Trip = Mapping[SSAValue, int]  # values of the induction variables of unrolled loops


@dataclass
class _Level:
    """One loop being written; the outermost level is the function itself."""

    block: Block
    bounds: Sequence[SSAValue] = ()
    index: SSAValue | None = None
    ops: list[Operation] = field(default_factory=list[Operation])
    moved: dict[tuple[SSAValue, AddressSteps], SSAValue] = field(
        default_factory=dict[tuple[SSAValue, AddressSteps], SSAValue]
    )


class LoopNest:
    """The ops of a bundle function's body; new ones go into the innermost open loop."""

    def __init__(self) -> None:
        """Starts outside of all loops."""
        self._levels = [_Level(Block())]

    def __iter__(self) -> Iterator[Operation]:
        """The finished ops outside of all loops."""
        return iter(self._levels[0].ops)

    def append(self, op: Operation) -> None:
        """Add an op to the innermost loop."""
        self._levels[-1].ops.append(op)

    def open(self, bounds: Sequence[SSAValue], index: SSAValue) -> None:
        """Begin a loop; `index` is its induction variable at the kernel level."""
        block = Block(arg_types=[IndexType()])
        block.args[0].name_hint = f"i{len(self._levels) - 1}"
        self._levels.append(_Level(block, bounds, index))

    def close(self) -> None:
        """End the innermost loop."""
        level = self._levels.pop()
        level.block.add_ops([*level.ops, scf.YieldOp()])
        lower, upper, step = level.bounds
        self.append(scf.ForOp(lower, upper, step, [], Region(level.block)))

    def advance(self, start: SSAValue, steps: AddressSteps) -> SSAValue:
        """Return the address that is `start` in trip 0, computed in the outermost loop that defines its inputs."""
        total = Counter[SSAValue]()
        for index, size in steps:
            total[index] += size
        used = [(level, size) for level in self._levels if level.index is not None and (size := total[level.index])]
        if not used:
            return start
        home, key = used[-1][0], (start, tuple((level.block.args[0], size) for level, size in used))
        if key not in home.moved:
            apply = ApplyOp([*(i for i, _ in key[1]), start], _advance_map([size for _, size in key[1]]))
            home.ops.append(apply)
            home.moved[key] = apply.result
        return home.moved[key]


def _advance_map(sizes: Sequence[int]) -> AffineMapAttr:
    """``(d0, d1)[s0] -> (s0 + d0 * size + d1 * size)``."""
    total: AffineExpr = AffineExpr.symbol(0)
    for place, size in enumerate(sizes):
        total = total + AffineExpr.dimension(place) * size
    return AffineMapAttr(AffineMap(len(sizes), 1, (total,)))


def schedule(
    ops: Iterable[Operation],
    launch: Callable[[KernelOp, Trip], object],
    loop: Callable[[LoopBounds, SSAValue], LoopNest] | None,
    trip: Trip | None = None,
) -> None:
    """Visit the kernel ops among ops in execution order.

    Args:
        ops: of a function or a loop.
        launch: is told each op and the values of unrolled induction variables.
        loop: opens a loop, and gives what closes it; None unrolls.
        trip: values of the unrolled induction variables around them.
    """
    trip = trip or {}
    for op in ops:
        if isinstance(op, KernelOp):
            launch(op, trip)
        elif isinstance(op, scf.ForOp):
            bounds, index, body = loop_bounds(op), op.body.block.args[0], op.body.block
            if loop is None:
                for value in bounds.values:
                    schedule(body.ops, launch, None, {**trip, index: value})
            else:
                nest = loop(bounds, index)
                schedule(body.ops, launch, loop, trip)
                nest.close()


__all__ = ["AddressSteps", "LoopNest", "Trip", "schedule"]
