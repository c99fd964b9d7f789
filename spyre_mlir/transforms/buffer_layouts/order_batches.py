"""Pass `order-batches`: lays out buffers with batch dimensions outside of the rows, where products gain by it.

A product whose batch dimension lies inside of its rows in memory runs at a seventh of the rate. A buffer that the
program makes may have its dimensions in any order, so the pass moves batch dimensions outermost where that saves
predicted time.

Decision: docs/decisions/0162-batches-lie-outside-of-rows.md
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from typing_extensions import override
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.dialects.ir.functions import functions
from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.attributes import DeviceTensorType
from spyre_mlir.dialects.target import spec_of
from spyre_mlir.errors import LoweringError
from spyre_mlir.hw.cost import mac_rate
from spyre_mlir.hw.cost_parameters import CostParameters
from spyre_mlir.hw.division import SpanError, divide
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.hw.sticks import StickError, StickLayout
from spyre_mlir.transforms.kernel_to_superdsc.descriptors import kernel_work
from spyre_mlir.transforms.utils.cost_numbers import given_numbers
from spyre_mlir.transforms.utils.kernels.loops import batch_loops, footprints, loops_of


@dataclass(frozen=True)
class OrderBatchesPass(ModulePass):
    """Orders the dimensions of buffers that products in batches read or write.

    Attributes:
        numbers: of the cost model that differ from its calibrated profile, as ``name=value``.
    """

    name = "order-batches"

    numbers: tuple[str, ...] = ()

    @override
    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Order the buffers of every function."""
        spec, parameters = spec_of(ctx, op), given_numbers(self.numbers)
        for function in functions(op):
            for kernel_op in [o for o in function.body.block.ops if isinstance(o, kernel.ComputeOp) and o.is_product]:
                for number in range(len(kernel_op.operands)):
                    _order(kernel_op, number, spec, parameters)


def takes_any_order(value: SSAValue) -> bool:
    """Return whether a buffer may have its dimensions in any order: kernels alone make it and read it."""
    if not isinstance(value.owner, kernel.AllocOp) or kernel.device_tensor(value).layout.unit_extent > 1:
        return False
    users = [use.operation for use in value.uses]
    return all(isinstance(u, kernel.ComputeOp | kernel.ConvertOp | kernel.RestickifyOp | kernel.FreeOp) for u in users)


def _order(product: kernel.ComputeOp, number: int, spec: SpyreSpec, parameters: CostParameters) -> None:
    """Put dimensions of an operand that batches walk outermost, if its products take less time and all can walk it."""
    value = product.operands[number]
    alloc = value.owner
    if not batch_loops(product) or not takes_any_order(value) or not isinstance(alloc, kernel.AllocOp):
        return
    layout = kernel.device_tensor(value).layout
    orders = [order for order in _orders(product, number) if order != layout.order]
    if not orders:
        return
    allocs = _alike(alloc)
    ops = {use.operation for a in allocs for use in a.result.uses if isinstance(use.operation, kernel.KernelOp)}
    least, best = _products_ns(ops, spec, parameters), layout
    if least <= _products_ns(ops, spec, parameters, apart=True):
        return
    for order in orders:
        _lay_out(allocs, replace(layout, order=order))
        if (ns := _quicker_ns(ops, least, spec, parameters)) is not None:
            least, best = ns, replace(layout, order=order)
    _lay_out(allocs, best)


def _orders(product: kernel.ComputeOp, number: int) -> Sequence[tuple[int, ...]]:
    """Orders of an operand's dimensions in which those of the batch come first.

    Heads that are columns share a dimension with rows of the product: other batches go in front of it.
    """
    batch, index = batch_loops(product), product.maps.data[number].data
    order = kernel.device_tensor(product.operands[number]).layout.order
    walked = [d for d in order if any(name in batch for name, _ in index[d].terms)]
    alone = [d for d in walked if all(name in batch for name, _ in index[d].terms)]
    firsts = walked, [*alone, *(d for d in walked if d not in alone)]
    return list(dict.fromkeys((*first, *(d for d in order if d not in first)) for first in firsts))


def _quicker_ns(
    ops: Iterable[kernel.KernelOp], than: float, spec: SpyreSpec, parameters: CostParameters
) -> float | None:
    """Return the time of products as their operands lie now; None if it is no less, or a kernel cannot walk them."""
    try:
        if (ns := _products_ns(ops, spec, parameters)) >= than:
            return None
        for op in ops:
            op.verify_()
            kernel_work(op)
            divide(loops := loops_of(op), footprints(op, loops), spec)
    except (LoweringError, SpanError, StickError, VerifyException):
        return None
    return ns


def _alike(alloc: kernel.AllocOp) -> list[kernel.AllocOp]:
    """A buffer, and those of its layout that kernels compute from each other element by element.

    With another order, one of them could not take the place of the one before it in the scratchpads.
    """
    found, layout = [alloc], kernel.device_tensor(alloc.result).layout
    for known in found:
        ops = [use.operation for use in known.result.uses]
        for op in [o for o in ops if isinstance(o, kernel.ComputeOp)]:
            linked = [v for n, v in enumerate(op.inputs) if op.is_elementwise(n)]
            if known.result is not op.output and known.result not in linked:
                continue
            for value in (*linked, op.output):
                made = value.owner
                if not isinstance(made, kernel.AllocOp) or made in found:
                    continue
                if takes_any_order(value) and kernel.device_tensor(value).layout == layout:
                    found.append(made)
    return found


def _products_ns(
    ops: Iterable[kernel.KernelOp], spec: SpyreSpec, parameters: CostParameters, *, apart: bool = False
) -> float:
    """Return the time of the products among kernels as far as it depends on where their batches lie.

    It is the least of all orders if batches lie `apart`, outside of the rows of all operands.
    """
    products = [kernel_work(op).product for op in ops if op.is_product]
    products = [replace(p, inside=(1, 1, 1)) if apart else p for p in products if p is not None]
    return sum(p.macs / mac_rate(p, spec.cores_per_card, parameters) for p in products)


def _lay_out(allocs: Sequence[kernel.AllocOp], layout: StickLayout) -> None:
    for alloc in allocs:
        made = DeviceTensorType(replace(kernel.device_tensor(alloc.result), layout=layout))
        Rewriter.replace_value_with_new_type(alloc.result, made)
