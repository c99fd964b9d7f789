"""Pass `cut-columns`: cuts a product in two, or pads it, where no number of cores divides its columns finely enough.

```mlir
%y = spyre.loop.nest [m = 256, n = 4544, k = 4544] ins(%x[m, k], %w[n, k]) -> [m, n] : ... reduce "arith.addf" {...}
```
becomes a product with 4,096 columns, 64 sticks that all cores share, and one with 448, which fill one tensor.

Cores that have the same columns read the same of the weight, which takes longer the more they are. Where the columns
are 71 sticks, all cores divide rows. Two products are made if they are predicted to take clearly less time. If one
with more sticks, of zeros, takes less than both, a note at the product says how many columns (`padded`): 72 sticks.

A large weight is within a core's reach only if its columns are divided over the cores. A prime number of sticks of
columns cannot be divided, so the conversion to kernels reserves more sticks; a result in the default layout has no room
for them, and would become a copy. This pass cuts off a remainder instead: most of the columns are equal slices for all
cores, and the remaining ones a short product. Both products read the same weight.

Decision: docs/decisions/0007-equal-slices.md
Decision: docs/decisions/0245-columns-are-cut-where-cores-share-a-weight.md
Decision: docs/decisions/0250-columns-that-cores-share.md
Decision: docs/decisions/0171-inputs-lie-as-they-are-placed.md
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
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
from spyre_mlir.hw.cost_parameters import CostParameters
from spyre_mlir.hw.division import divisors
from spyre_mlir.hw.formats import DL16
from spyre_mlir.hw.spec import STICK_BYTES, SpyreSpec
from spyre_mlir.hw.sticks import LinearExpr, round_up
from spyre_mlir.transforms.kernel_plans.padded_columns import has_room, pad, product_size
from spyre_mlir.transforms.kernel_plans.shared_weights import Columns, quicker_columns
from spyre_mlir.transforms.loop_to_kernel.operators.reductions import column_of, is_product
from spyre_mlir.transforms.utils.cost_numbers import given_numbers
from spyre_mlir.transforms.utils.function_pass import FunctionPass
from spyre_mlir.transforms.utils.nests.nest_parts import part_of

_LANES = DL16.elements_per_stick()


@dataclass(frozen=True)
class CutColumnsPass(FunctionPass):
    """Cuts or pads columns where a core would not reach its part of a weight, or too many would read the same of it.

    Attributes:
        numbers: of the cost model that differ from its calibrated profile, as ``name=value``.
    """

    name = "cut-columns"

    numbers: tuple[str, ...] = ()

    @override
    def rewrite(self, function: func.FuncOp, spec: SpyreSpec) -> None:
        """Cut every product whose columns cores cannot share well."""
        placed, rates = placed_results(function), given_numbers(self.numbers)
        nests = [(o, column) for o in function.body.block.ops if isinstance(o, NestOp) and (column := _column_of(o))]
        # All are looked at first: a product that gets a weight of its own takes the columns of the whole one apart.
        chosen = [_quicker(nest, column, spec, rates, leaves=_is_result(nest, placed)) for nest, column in nests]
        for (nest, column), columns in zip(nests, chosen, strict=True):
            if columns.padded > nest.space.extents[column]:
                pad(nest, column, columns.padded)
            elif 0 < columns.first < nest.space.extents[column]:
                _cut(nest, column, columns.first)


def _quicker(nest: NestOp, column: str, spec: SpyreSpec, rates: CostParameters, *, leaves: bool) -> Columns:
    """The columns of two products in the place of one, or of one with more of them."""
    whole = Columns(0, nest.space.extents[column])
    if not _is_within_reach(nest, column, spec):  # a result that does not leave has room for more sticks
        return replace(whole, first=_most(whole.padded, spec)) if leaves else whole
    if (size := product_size(nest, column)) is None:
        return whole
    return quicker_columns(size, spec, rates, leaves=leaves, room=not leaves and has_room(nest, column))


def _column_of(op: NestOp) -> str | None:
    """Return the loop over columns of a product that may be cut."""
    if not is_product(op) or op.dest is not None or hint_of(op) is not None:
        return None
    column = column_of(op)
    return column if column is not None and op.output_map.data[-1] == LinearExpr.of(column) else None


def _is_result(op: NestOp, placed: set[int]) -> bool:
    """Return whether a nest is a placed result, and nothing else."""
    uses = list(op.result.uses)
    return bool(uses) and all(isinstance(u.operation, ReturnOp) and u.index in placed for u in uses)


def _is_within_reach(op: NestOp, column: str, spec: SpyreSpec) -> bool:
    """Return whether the sticks of columns can be divided so that a core reaches its part of the weight."""
    weights = [(v, m) for v, m in zip(op.inputs, op.input_maps, strict=True) if column in m.names]
    if len(weights) != 1 or not any(e == LinearExpr.of(column) for e in weights[0][1].data):
        return True
    columns, (weight, index) = op.space.extents[column], weights[0]
    # Whole sticks of columns, and of rows, behind which a product reads zeros.
    whole = {n for e in index.data for n, _ in e.terms if n == column or n in op.reduced}
    extents = [round_up(s, _LANES) if whole & {n for n, _ in e.terms} else s for s, e in _dims(weight, index)]
    sticks, held = -(-columns // _LANES), prod(extents) // _LANES * STICK_BYTES
    return any(held // split <= spec.span_bytes for split in divisors(sticks, spec.cores_per_card))


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
