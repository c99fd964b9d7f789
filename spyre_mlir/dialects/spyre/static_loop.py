"""Static loops of the device: `scf.for` with constant bounds, carrying no values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.dialects.target import spec_at


@dataclass(frozen=True)
class LoopBounds:
    """The constant bounds of a loop; the induction variable takes the values of ``range(lower, upper, step)``."""

    lower: int
    upper: int
    step: int

    @property
    def values(self) -> range:
        """The values of the induction variable, trip by trip."""
        return range(self.lower, self.upper, self.step)

    @property
    def trips(self) -> int:
        """Number of trips."""
        return len(self.values)


def loop_bounds(loop: scf.ForOp) -> LoopBounds:
    """Return the bounds of a loop that the device can run.

    Raises:
        VerifyException: a bound is no constant index, the loop carries values, or it runs too seldom or too often.
    """
    if loop.iter_args:
        raise VerifyException(
            f"the loop carries {len(loop.iter_args)} values from trip to trip, a bundle's loop carries none; "
            "try a buffer that is allocated before the loop and updated in place"
        )
    lower, upper, step = (_constant(v, name) for v, name in ((loop.lb, "lower"), (loop.ub, "upper"), (loop.step, "")))
    if step < 1:
        raise VerifyException(f"the loop steps by {step}, expected at least 1; try counting upwards")
    bounds = LoopBounds(lower, upper, step)
    most = spec_at(loop).loop_trips
    if not 1 <= bounds.trips <= most:
        raise VerifyException(
            f"the loop from {lower} to {upper} by {step} makes {bounds.trips} trips, the device counts 1 to "
            f"{most}; try larger tiles, or two nested loops"
        )
    return bounds


def _constant(value: SSAValue, name: str) -> int:
    owner = value.owner
    part = f"the {name} bound" if name else "the step"
    if not isinstance(value.type, IndexType):
        raise VerifyException(f"{part} of the loop has type {value.type}, expected index")
    if not isinstance(owner, arith.ConstantOp) or not isinstance(owner.value, IntegerAttr):
        origin = "a block argument" if isinstance(owner, Block) else owner.name
        raise VerifyException(
            f"{part} of the loop is no constant but comes from {origin}; loops on the device have constant bounds, "
            "try arith.constant"
        )
    return owner.value.value.data


def loop_of(index: SSAValue) -> scf.ForOp | None:
    """Return the loop whose induction variable a value is."""
    block = index.owner
    if not isinstance(block, Block) or not isinstance(loop := block.parent_op(), scf.ForOp):
        return None
    return loop if block.args and block.args[0] is index else None


def enclosing_loops(op: Operation, home: Block | None = None) -> Iterator[scf.ForOp]:
    """Return the loops around an op, the innermost first; only those inside of `home`, if given."""
    while op.parent_block() is not home and (parent := op.parent_op()) is not None:
        op = parent
        if isinstance(op, scf.ForOp):
            yield op


def ancestor_in(block: Block, op: Operation) -> Operation:
    """Return the op of a block that is or contains `op`, which stands in the block or in a loop of it."""
    while op.parent_block() is not block and (parent := op.parent_op()) is not None:
        op = parent
    return op


def verify_loops(op: Operation) -> None:
    """Check the loops around an op.

    Raises:
        VerifyException: the device cannot run one of them.
    """
    for loop in enclosing_loops(op):
        loop_bounds(loop)


def trips_of(op: Operation, home: Block | None = None) -> int:
    """Return how often an op runs, per run of `home`, or of the whole function."""
    trips = 1
    for loop in enclosing_loops(op, home):
        trips *= loop_bounds(loop).trips
    return trips
