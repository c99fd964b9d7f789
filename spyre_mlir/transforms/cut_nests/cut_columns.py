"""Pass `cut-columns`: cuts a product in two where no number of cores divides its columns finely enough.

A large weight is within a core's reach only if its columns are divided over the cores. A prime number of sticks of
columns cannot be divided, so the conversion to kernels reserves more sticks; a result in the default layout has no room
for them, and would become a copy. This pass cuts off a remainder instead: most of the columns are equal slices for all
cores, and the remaining ones a short product. Both products read the same weight.

Decision: docs/decisions/0007-equal-slices.md
Decision: docs/decisions/0171-inputs-lie-as-they-are-placed.md
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

from typing_extensions import override
from xdsl.dialects import func
from xdsl.dialects.func import ReturnOp
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from spyre_mlir.dialects.argument_notes import placed_results
from spyre_mlir.dialects.spyre.attributes import IndexMapAttr
from spyre_mlir.dialects.spyre.hints import hint_of
from spyre_mlir.dialects.spyre.loop import EmptyOp, NestOp
from spyre_mlir.dialects.tensors import shape_of
from spyre_mlir.hw.division import divisors
from spyre_mlir.hw.formats import DL16
from spyre_mlir.hw.spec import STICK_BYTES, SpyreSpec
from spyre_mlir.hw.sticks import LinearExpr, round_up
from spyre_mlir.transforms.loop_to_kernel.operators.reductions import column_of, is_product
from spyre_mlir.transforms.utils.function_pass import FunctionPass
from spyre_mlir.transforms.utils.nests.nest_parts import part_of

_LANES = DL16.elements_per_stick()


@dataclass(frozen=True)
class CutColumnsPass(FunctionPass):
    """Cuts the columns of products whose results leave the program in the default layout."""

    name = "cut-columns"

    @override
    def rewrite(self, function: func.FuncOp, spec: SpyreSpec) -> None:
        """Cut every product that is a placed result and whose columns cores cannot share well."""
        placed = placed_results(function)
        for nest in [o for o in function.body.block.ops if isinstance(o, NestOp)]:
            if _is_result(nest, placed) and (column := _column_to_cut(nest, spec)) is not None:
                _cut(nest, column, _most(nest.space.extents[column], spec))


def _is_result(op: NestOp, placed: set[int]) -> bool:
    """Return whether a product is a placed result, and nothing else."""
    if not is_product(op) or op.dest is not None or hint_of(op) is not None:
        return False
    uses = list(op.result.uses)
    return bool(uses) and all(isinstance(u.operation, ReturnOp) and u.index in placed for u in uses)


def _column_to_cut(op: NestOp, spec: SpyreSpec) -> str | None:
    """Return the loop over columns, if its sticks cannot be divided so that a core reaches its part of the weight."""
    column = column_of(op)
    if column is None or op.output_map.data[-1] != LinearExpr.of(column):
        return None
    weights = [(v, m) for v, m in zip(op.inputs, op.input_maps, strict=True) if column in m.names]
    if len(weights) != 1 or not any(e == LinearExpr.of(column) for e in weights[0][1].data):
        return None
    columns, (weight, index) = op.space.extents[column], weights[0]
    # Whole sticks of columns, and of rows, behind which a product reads zeros.
    whole = {n for e in index.data for n, _ in e.terms if n == column or n in op.reduced}
    extents = [round_up(s, _LANES) if whole & {n for n, _ in e.terms} else s for s, e in _dims(weight, index)]
    sticks, held = -(-columns // _LANES), prod(extents) // _LANES * STICK_BYTES
    within = any(held // split <= spec.span_bytes for split in divisors(sticks, spec.cores_per_card))
    return None if within or _most(columns, spec) in (0, columns) else column


def _dims(value: SSAValue, index: IndexMapAttr) -> Iterable[tuple[int, LinearExpr]]:
    """Extents of a tensor, with what walks them."""
    return zip(shape_of(value), index.data, strict=True)


def _most(columns: int, spec: SpyreSpec) -> int:
    """Return the most columns of which all cores have equally many whole sticks."""
    sticks = columns // _LANES
    return (sticks - sticks % spec.cores_per_card) * _LANES


def _cut(op: NestOp, column: str, first: int) -> None:
    """Replace a product by that of the first columns and that of the others, which fill one tensor."""
    filled: NestOp | EmptyOp = EmptyOp(op.result.type)
    filled.location = op.location
    Rewriter.insert_op(filled, InsertPoint.before(op))
    for start, columns in ((0, first), (first, op.space.extents[column] - first)):
        part = part_of(op, column, slice(start, start + columns), {}, filled.result)
        Rewriter.insert_op(part, InsertPoint.before(op))
        filled = part
    op.result.replace_all_uses_with(filled.result)
    Rewriter.erase_op(op)
