"""Pass `forward-results`: lets a product write a result of the program itself, if that is quicker than a copy after it.

```mlir
spyre.kernel.compute "batchmatmul" … outs(%t[b, m, n])                        // in the scratchpads
spyre.kernel.compute "identity" … ins(%t[y, x, c]) outs(%r[c, y, x])          // to device memory, for the host
```
A product that its arithmetic limits has time to write the result in its final order; in a product that waits for
memory, reads and writes would alternate. The kernels are divided already, so the cost model compares both forms as they
would run.

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

from spyre_mlir.dialects.ir.functions import functions
from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.attributes import IndexMapAttr
from spyre_mlir.dialects.spyre.hints import hint_of
from spyre_mlir.dialects.target import spec_of
from spyre_mlir.errors import LoweringError
from spyre_mlir.hw.cost import total_us
from spyre_mlir.hw.cost_parameters import CostParameters
from spyre_mlir.hw.sticks import LinearExpr, StickError
from spyre_mlir.ops.hardware_functions import COPY
from spyre_mlir.transforms.kernel_to_superdsc.descriptors import kernel_work
from spyre_mlir.transforms.utils.cost_numbers import given_numbers
from spyre_mlir.transforms.utils.kernels.launches import Launches, launch_numbers, one_launch


@dataclass(frozen=True)
class ForwardResultsPass(ModulePass):
    """Lets products write results of the program that copies would write.

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
                if (product := _product_before(copy, launches)) is not None:
                    _forward(copy, product, parameters)


def _product_before(copy: kernel.ComputeOp, launches: Launches) -> kernel.ComputeOp | None:
    """Return the product of which a copy makes a result of the program, which nothing else writes, reads or copies."""
    if len(copy.inputs) != 1 or copy.element is not None:
        return None
    source, result = copy.inputs[0], copy.output
    users = [use.operation for use in source.uses]
    writers = [op for op in users if isinstance(op, kernel.ComputeOp) and op.is_product and op.output is source]
    if len(users) != 2 or not writers or not isinstance(source.owner, kernel.AllocOp):
        return None
    if hint_of(copy) is not None or hint_of(writers[0]) is not None:
        return None
    read = [use.operation for use in result.uses if use.operation is not copy]
    if not read or not all(isinstance(op, kernel.FromDeviceOp) for op in read):
        return None
    alike = copy.tensors[0].format == copy.tensors[1].format and writers[0].parent is copy.parent
    made = isinstance(result.owner, kernel.AllocOp)
    return writers[0] if alike and made and one_launch([copy, writers[0]], launches) else None


def _forward(copy: kernel.ComputeOp, product: kernel.ComputeOp, parameters: CostParameters) -> None:
    """Let a product write where a copy of its result goes, if that takes less time than both."""
    index, buffer, block = _composed(copy, product), copy.output.owner, product.parent_block()
    if index is None or block is None or not isinstance(buffer, kernel.AllocOp):
        return
    source, maps, before = product.output, product.maps, _us(product, parameters) + _us(copy, parameters)
    place = len(product.inputs)
    product.operands[place], product.maps = buffer.result, ArrayAttr([*maps.data[:-1], index])
    try:
        product.verify_()
        gains = _us(product, parameters) < before
    except (LoweringError, StickError, VerifyException):
        gains = False
    if not gains:
        product.operands[place], product.maps = source, maps
        return
    Rewriter.erase_op(copy)
    buffer.detach()
    block.insert_op_before(buffer, product)
    if isinstance(made := source.owner, kernel.AllocOp):
        Rewriter.erase_op(made)


def _us(op: kernel.KernelOp, parameters: CostParameters) -> float:
    """Return the time of a kernel as it is divided."""
    return total_us(kernel_work(op), parameters)


def _composed(copy: kernel.ComputeOp, product: kernel.ComputeOp) -> IndexMapAttr | None:
    """Where a copy takes the elements that a product writes; None unless it takes each of them once."""
    read, written = copy.maps.data[0].data, product.maps.data[-1].data
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
