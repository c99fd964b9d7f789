"""Pass `choose-rows`: takes the rows of a product from the loop that fills the array best where its operands lie.

```mlir
spyre.kernel.compute "batchmatmul" [b0 = 512, m = 2, n = 2048, k = 768] ins(%x[b0, m, k], %w[n, k]) outs(%y[b0, m, n])
```
becomes
```mlir
spyre.kernel.compute "batchmatmul" [b0 = 2, m = 512, n = 2048, k = 768] ins(%x[m, b0, k], %w[n, k]) outs(%y[m, b0, n])
```
All loops of the first operand alone are rows of one matrix. The hardware takes one of them for the rows of a product
and the others for a batch: with few rows the array is filled in part, and a batch that lies inside of the rows in
memory slows it down. Models whose positions come first have the sequences in the place of the rows.

Decision: docs/decisions/0220-rows-are-the-loop-that-fills-the-array.md
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from math import inf

from typing_extensions import override
from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.passes import ModulePass

from spyre_mlir.dialects.ir.functions import functions
from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.attributes import IndexMapAttr, SpaceAttr
from spyre_mlir.dialects.spyre.hints import hint_of
from spyre_mlir.dialects.target import spec_of
from spyre_mlir.errors import LoweringError
from spyre_mlir.hw.cost import Work, total_us
from spyre_mlir.hw.cost_parameters import CostParameters
from spyre_mlir.hw.sticks import LinearExpr
from spyre_mlir.transforms.buffer_layouts.order_batches import takes_any_order
from spyre_mlir.transforms.kernel_plans.kernel_choices import KernelChoices
from spyre_mlir.transforms.utils.cost_numbers import given_numbers
from spyre_mlir.transforms.utils.kernels.loops import row_loops

CLEAR_GAIN = 0.1  # part of its time that a product has to save: neighbours are divided as the present loops are


@dataclass(frozen=True)
class ChooseRowsPass(ModulePass):
    """Chooses which loop of a product its rows are.

    Attributes:
        numbers: of the cost model that differ from its calibrated profile, as ``name=value``.
    """

    name = "choose-rows"

    numbers: tuple[str, ...] = ()

    @override
    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Choose the rows of every product with a matrix that has no batches, unless a hint or its text divides it."""
        choices = KernelChoices.known(spec_of(ctx, op), given_numbers(self.numbers), narrow=False)
        for function in functions(op):
            for product in [o for o in function.body.block.ops if isinstance(o, kernel.ComputeOp) and o.is_product]:
                if hint_of(product) is None:
                    _choose(product, choices)


def _choose(product: kernel.ComputeOp, choices: KernelChoices) -> None:
    """Put the loop last among the rows with which the product alone takes least time, if it gains clearly."""
    rows = row_loops(product)
    if len(rows) < 2 or any(split > 1 for split in product.space_splits().values()):
        return
    present, parameters = (product.space, product.maps), choices.parameters
    # Loops over a large batch that lies inside of the rows make its parts as quick as small ones.
    small = parameters.pe_shared_small_batch_mac_per_ns_per_core
    in_loops = replace(parameters, pe_shared_large_batch_mac_per_ns_per_core=small)
    best, least = present, (1 - CLEAR_GAIN) * _alone_us(product, choices, in_loops)
    for row in rows[:-1]:
        _turn(product, rows, [*(r for r in rows if r != row), row])
        if (us := _alone_us(product, choices, parameters)) < least:
            best, least = (product.space, product.maps), us
        product.space, product.maps = present
    product.space, product.maps = best


def _alone_us(product: kernel.ComputeOp, choices: KernelChoices, parameters: CostParameters) -> float:
    """The least time of a product by itself; infinite if no core reaches its operands.

    What kernels alone make and read is in the scratchpads, with batches outside of the rows, as `order-batches` may lay
    it out.
    """
    whole, free = product.space, frozenset(n for n, value in enumerate(product.operands) if takes_any_order(value))
    try:
        choices.divide(product)
        works = [candidate.work for candidate in choices.candidates(product)]
    except LoweringError:
        return inf
    finally:
        product.space = whole
    return min(total_us(_apart(work, free), parameters, local=free) for work in works)


def _apart(work: Work, free: Collection[int]) -> Work:
    """The work of a product, if batches lie outside of the rows of some operands."""
    if work.product is None:
        return work
    left, right, result = (1 if n in free else batch for n, batch in enumerate(work.product.inside))
    return replace(work, product=replace(work.product, inside=(left, right, result)))


def _turn(product: kernel.ComputeOp, rows: Sequence[str], order: Sequence[str]) -> None:
    """Let each of these loops have the name and the place of another one."""
    extents, names = product.space.extents, dict(zip(order, rows, strict=True))
    old = {new: name for name, new in names.items()}
    product.space = SpaceAttr(tuple(replace(d, extent=extents[old.get(d.name, d.name)]) for d in product.space.data))
    places = {name: LinearExpr.of(names.get(name, name)) for name in extents}
    product.maps = ArrayAttr([IndexMapAttr(tuple(e.at(places) for e in m.data)) for m in product.maps.data])


__all__ = ["ChooseRowsPass"]
