"""Steps on numbers of rows that stay as the reductions before them leave them: one element per stick.

A reduction along the lanes leaves a stick for each row, and what joins such a number with whole rows reads it so.
Steps in between, as those of a softmax that runs over blocks of keys, would be quicker with rows in the lanes, but the
changes of layout on the way there and back take longer.

Decision: docs/decisions/0235-numbers-of-rows-stay-one-per-stick.md
"""

from __future__ import annotations

from math import prod

from xdsl.ir import Operation, SSAValue

from spyre_mlir.dialects.spyre.layout_choices import NO_LOOP, LayoutChoice
from spyre_mlir.dialects.spyre.loop import NestOp
from spyre_mlir.dialects.tensors import shape_of
from spyre_mlir.hw.sticks import UNIT
from spyre_mlir.transforms.buffer_layouts.repair.planned_layouts import PlannedLayouts

SPARSE = LayoutChoice(NO_LOOP, UNIT)


def sparse_chains(planned: PlannedLayouts) -> dict[Operation, LayoutChoice]:
    """Return layouts of the elementwise nests of a function that read nothing but such numbers, and lie otherwise.

    Chains begin at nests that have one element per stick already.
    """
    sparse, found = set[SSAValue](), dict[Operation, LayoutChoice]()
    for op in planned.numbers:
        if (choice := planned.choices.get(op)) is None or not isinstance(op, NestOp):
            continue
        follows = op in planned.open and op.combine is None and op.dest is None and _reads_only(op, sparse)
        if follows and choice.stick != UNIT:
            found[op] = SPARSE
        if follows or choice.stick == UNIT:
            sparse.add(op.result)
    return found


def _reads_only(op: NestOp, sparse: set[SSAValue]) -> bool:
    """Whether a nest reads such numbers, and besides them at most single elements."""
    many = [value for value in op.inputs if prod(shape_of(value)) > 1]
    return bool(many) and sparse.issuperset(many)


__all__ = ["SPARSE", "sparse_chains"]
