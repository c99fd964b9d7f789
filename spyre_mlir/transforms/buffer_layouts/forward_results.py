"""Pass `forward-results`: lets a kernel write where a copy would bring its result, if that is quicker.

```mlir
spyre.kernel.compute "silu" … outs(%t[y, x, c])                               // in the scratchpads
spyre.kernel.compute "identity" … ins(%t[y, x, c]) outs(%r[y + 1, x + 1, c])  // to device memory, between zeros
```
becomes one kernel, which writes %r. A product that its arithmetic limits has time to write a result of the program in
its final order; in a product that waits for memory, reads and writes would alternate. The kernels are divided and the
buffers placed already, so the cost model compares both forms as they would run.

Decision: docs/decisions/0135-products-write-results.md
"""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override
from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.dialects.boxes import box_of, overlap
from spyre_mlir.dialects.ir.functions import functions
from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.attributes import IndexMapAttr
from spyre_mlir.dialects.spyre.hints import hint_of
from spyre_mlir.dialects.target import spec_of
from spyre_mlir.hw.cost_parameters import CostParameters
from spyre_mlir.hw.sticks import LinearExpr, StickError
from spyre_mlir.ops.hardware_functions import COPY
from spyre_mlir.transforms.kernel_to_superdsc.kernel_times import kernel_us
from spyre_mlir.transforms.utils.cost_numbers import given_numbers
from spyre_mlir.transforms.utils.hints import hinted_place
from spyre_mlir.transforms.utils.kernels.launches import Launches, launch_numbers, one_launch


@dataclass(frozen=True)
class ForwardResultsPass(ModulePass):
    """Lets kernels write what copies would write to device memory.

    Attributes:
        numbers: of the cost model that differ from its calibrated profile, as ``name=value``.
    """

    name = "forward-results"

    numbers: tuple[str, ...] = ()

    @override
    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Look at the copies of every function."""
        spec_of(ctx, op)  # the cost model has the numbers of the card
        parameters = given_numbers(self.numbers)
        for function in functions(op):
            block = function.body.block
            launches = launch_numbers(block)
            for copy in [o for o in block.ops if isinstance(o, kernel.ComputeOp) and o.function_name == COPY]:
                if (writer := _writer_before(copy, launches)) is not None:
                    _forward(copy, writer, parameters)


def _writer_before(copy: kernel.ComputeOp, launches: Launches) -> kernel.KernelOp | None:
    """Return the kernel whose result only a copy reads, and which may write in device memory where the copy does."""
    source, result = copy.inputs[0], copy.output
    users = [use.operation for use in source.uses]
    writers = [op for op in users if isinstance(op, kernel.KernelOp) and op.output is source]
    if len(users) != 2 or len(writers) != 1 or isinstance(writers[0], kernel.RestickifyOp) or copy.element is not None:
        return None
    (writer,), made = writers, (source.owner, result.owner)
    if not all(isinstance(op, kernel.AllocOp) and op.parent is writer.parent is copy.parent for op in made):
        return None
    asked = hint_of(copy), hint_of(writer), hinted_place(source), hinted_place(result)
    alike = copy.tensors[0].format == copy.tensors[1].format and copy.tensors[1].space == "hbm"
    if not alike or any(asked) or not one_launch([copy, writer], launches):
        return None
    return writer if result not in writer.inputs and _is_free(writer, copy) else None


def _is_free(writer: kernel.KernelOp, copy: kernel.ComputeOp) -> bool:
    """Return whether nothing between a kernel and a copy reads the copy's part of its result, or writes there."""
    part = box_of(copy, copy.maps.data[-1])
    after = (use.operation for use in copy.output.uses if writer.is_before_in_block(use.operation))
    users = [op for op in after if op.is_before_in_block(copy)]
    fills = [op for op in users if isinstance(op, kernel.KernelOp) and copy.output not in op.inputs]
    return len(fills) == len(users) and not any(overlap(part, box_of(op, op.maps.data[-1])) for op in fills)


def _forward(copy: kernel.ComputeOp, writer: kernel.KernelOp, parameters: CostParameters) -> None:
    """Let a kernel write where a copy of its result goes, if that takes less time than both."""
    index, buffer, block = _composed(copy, writer), copy.output.owner, writer.parent_block()
    if index is None or block is None or not isinstance(buffer, kernel.AllocOp):
        return
    source, maps, before = writer.output, writer.maps, kernel_us(writer, parameters) + kernel_us(copy, parameters)
    place = len(writer.inputs)
    writer.operands[place], writer.maps = buffer.result, ArrayAttr([*maps.data[:-1], index])
    try:
        writer.verify_()
        gains = kernel_us(writer, parameters) < before
    except (StickError, VerifyException):
        gains = False
    if not gains:
        writer.operands[place], writer.maps = source, maps
        return
    Rewriter.erase_op(copy)
    if not buffer.is_before_in_block(writer):
        buffer.detach()
        block.insert_op_before(buffer, writer)
    if isinstance(made := source.owner, kernel.AllocOp):
        Rewriter.erase_op(made)


def _composed(copy: kernel.ComputeOp, writer: kernel.KernelOp) -> IndexMapAttr | None:
    """Where a copy takes the elements that a kernel writes; None unless it takes each of them once."""
    read, written = copy.maps.data[0].data, writer.maps.data[-1].data
    extents, at = copy.space.extents, dict[str, LinearExpr]()
    for dim, (expr, extent) in enumerate(zip(read, copy.tensors[0].shape, strict=False)):
        if extent == 1 and expr == LinearExpr():
            continue
        if len(expr.terms) != 1 or expr != LinearExpr.of(name := expr.terms[0][0]):
            return None
        if name in at or extents[name] != extent:
            return None
        at[name] = written[dim]
    if len(at) != len(copy.space.data):
        return None
    return IndexMapAttr(tuple(expr.at(at) for expr in copy.maps.data[-1].data))
