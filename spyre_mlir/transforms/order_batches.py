"""Pass `order-batches`: lays a buffer out so that products find their batches outside of the rows.

A product whose batch lies inside of the rows in memory runs at a seventh of the rate. A buffer that the program makes
may have its dimensions in any order, so those that a batch walks go outermost where that is predicted to gain.

Decision: docs/decisions/0135-batches-lie-outside-of-rows.md
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from typing_extensions import override
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.attributes import DeviceTensorType
from spyre_mlir.dialects.superdsc.model.work import work_of
from spyre_mlir.dialects.target import spec_of
from spyre_mlir.errors import LoweringError
from spyre_mlir.hw.cost import mac_rate
from spyre_mlir.hw.cost_parameters import CALIBRATED
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.hw.sticks import StickError, StickLayout
from spyre_mlir.transforms.kernel_to_superdsc.descriptors import describe_kernel
from spyre_mlir.transforms.utils.loops import batch_loops
from spyre_mlir.transforms.utils.rebuild import functions


@dataclass(frozen=True)
class OrderBatchesPass(ModulePass):
    """Orders the dimensions of buffers that products in batches read or write."""

    name = "order-batches"

    @override
    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Order the buffers of every function."""
        spec = spec_of(ctx, op)
        for function in functions(op):
            for buffer, order in list(_wanted(function.body.block)):
                _order(buffer, order, spec)


def _wanted(block: Block) -> Iterator[tuple[SSAValue, tuple[int, ...]]]:
    """Buffers of a block with the orders that products in batches want them to have."""
    for op in block.ops:
        if not isinstance(op, kernel.ComputeOp) or not op.is_product:
            continue
        batch = batch_loops(op)
        for value, index in zip(op.operands, op.maps.data, strict=True):
            if not batch or not _is_free(value):
                continue
            order = kernel.device_tensor(value).layout.order
            first = [d for d in order if any(name in batch for name, _ in index.data[d].terms)]
            wanted = (*first, *(d for d in order if d not in first))
            if wanted != order:
                yield value, wanted


def _is_free(value: SSAValue) -> bool:
    """Return whether kernels that take any order make a buffer and read it, and nothing else does."""
    if not isinstance(value.owner, kernel.AllocOp) or kernel.device_tensor(value).layout.unit_extent > 1:
        return False
    users = [use.operation for use in value.uses]
    return all(isinstance(u, kernel.ComputeOp | kernel.ConvertOp | kernel.FreeOp) for u in users)


def _order(buffer: SSAValue, order: tuple[int, ...], spec: SpyreSpec) -> None:
    """Give a buffer an order, if its products take less time then and all kernels can walk it."""
    ops = {use.operation for use in buffer.uses if isinstance(use.operation, kernel.KernelOp)}
    layout, before = kernel.device_tensor(buffer).layout, _products_ns(ops, spec)
    _lay_out(buffer, StickLayout(order, layout.stick, layout.extents, layout.unit_extent))
    try:
        gains = _products_ns(ops, spec) < before
        for op in ops:
            op.verify_()
            describe_kernel(op, 0)
    except (LoweringError, StickError, VerifyException):
        gains = False
    if not gains:
        _lay_out(buffer, layout)


def _products_ns(ops: Iterable[kernel.KernelOp], spec: SpyreSpec) -> float:
    """Return the time of the products among kernels as far as it depends on where their batches lie."""
    products = (work_of(describe_kernel(op, 0).descriptor).product for op in ops if op.is_product)
    return sum(p.macs / mac_rate(p, spec.cores_per_card, CALIBRATED) for p in products if p is not None)


def _lay_out(buffer: SSAValue, layout: StickLayout) -> None:
    made = DeviceTensorType(replace(kernel.device_tensor(buffer), layout=layout))
    Rewriter.replace_value_with_new_type(buffer, made)
