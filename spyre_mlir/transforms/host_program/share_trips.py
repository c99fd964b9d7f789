"""Pass `share-trips`: lets trips of a loop over slices make several steps, as each trip takes time of its own.

```mlir
scf.for %i = %0 to %16 step %1 {                            // 16
  %x = spyre.kernel.tile %t dim 0 at %i * 1
  …
```
becomes a loop of 4 trips in which the kernels stand four times, with tiles `at %i * 4`, `at %i * 4 from 1` and so on.
Steps that are left over have a loop of their own behind it.

Decision: docs/decisions/0209-trips-of-loops-over-slices-make-several-steps.md
"""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override
from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter

from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.kernel_loop import TileOp
from spyre_mlir.dialects.spyre.static_loop import loop_bounds
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.transforms.utils.function_pass import FunctionPass


@dataclass(frozen=True)
class ShareTripsPass(FunctionPass):
    """Writes the kernels of some steps behind each other, in fewer trips.

    Attributes:
        steps: of a trip at most.
        kernels: of a trip with several steps at most.
    """

    name = "share-trips"

    steps: int = 8
    kernels: int = 64

    @override
    def rewrite(self, function: func.FuncOp, spec: SpyreSpec) -> None:
        """Look at a function that is nothing but a loop."""
        *bounds, loop, _ = function.body.block.ops if len(function.body.block.ops) > 1 else (None, None)
        if isinstance(loop, scf.ForOp) and all(isinstance(op, arith.ConstantOp) for op in bounds):
            kernels = sum(isinstance(op, kernel.KernelOp) for op in loop.body.block.ops)
            _share(loop, min(self.steps, self.kernels // max(kernels, 1)))


def steps_of_trip(steps: int, most: int) -> int:
    """Return how many steps share a trip, at most `most`, for the fewest trips; steps left over have one each."""
    return min(range(1, max(most, 1) + 1), key=lambda n: (steps // n + steps % n, n))


def _share(loop: scf.ForOp, most: int) -> None:
    """Replace a loop by one that makes several steps in a trip, and one for the steps that are left over."""
    index, body = loop.body.block.args[0], loop.body.block
    if any(not isinstance(use.operation, TileOp) or use.operation.parent is not body for use in index.uses):
        return
    steps = loop_bounds(loop).trips
    several = steps_of_trip(steps, most)
    if several == 1:
        return
    trips, rest = divmod(steps, several)
    made = _loop(loop, trips, several, 0)
    if rest:
        made += _loop(loop, rest, 1, trips * several)
    Rewriter.replace_op(loop, made, [])


def _loop(loop: scf.ForOp, trips: int, several: int, before: int) -> list[Operation]:
    """A loop that makes `several` of the steps in each trip, behind the first `before`."""
    block = Block(arg_types=[IndexType()])
    for step in range(before, before + several):
        _write(loop.body.block, block, several, step)
    end = scf.YieldOp()
    block.add_op(end)
    bounds = [arith.ConstantOp(IntegerAttr.from_index_int_value(n)) for n in (0, trips, 1)]
    lower, upper, one = (bound.result for bound in bounds)
    made = scf.ForOp(lower, upper, one, [], Region(block))
    for op in (*bounds, made, end):
        op.location = loop.location
    return [*bounds, made]


def _write(body: Block, block: Block, several: int, step: int) -> None:
    """Add the ops of a step to a block, with tiles that begin at its number."""
    values: dict[SSAValue, SSAValue] = {body.args[0]: block.args[0]}
    for op in body.ops:
        if isinstance(op, scf.YieldOp):
            continue
        if isinstance(op, TileOp) and op.index is body.args[0]:
            copy = _moved(op, values.get(op.source, op.source), block.args[0], several, step)
            values[op.result] = copy.result
        else:
            copy = op.clone(value_mapper=values)
        copy.location = op.location
        block.add_op(copy)


def _moved(op: TileOp, source: SSAValue, index: SSAValue, several: int, step: int) -> TileOp:
    """The tile of a step: its trips are `several` steps apart."""
    apart = op.step.value.data
    first = op.first_element + step * apart
    return TileOp(source, op.dim.value.data, index, several * apart, op.result.type, first=first)


__all__ = ["ShareTripsPass", "steps_of_trip"]
