"""Pass `view-copies`: replaces a copy between a restickify and a product by a view of the restickify's result.

```mlir
spyre.kernel.restickify … outs(%t[w, i, j])                                      // [392, 28, 64]
spyre.kernel.compute "identity" … ins(%t[m * 14 + k, b, l]) outs(%c[b, m, k * 64 + l])  // [28, 28, 896]
```
If %c with its dimensions in another order has every element where it lies in %t, the product reads a view of %t.
A restickify works in device memory, so the copy could gain no more than the product's time in the scratchpads.

Decision: docs/decisions/0131-a-copy-in-place-is-a-view.md
"""

from __future__ import annotations

from collections.abc import Mapping
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
from spyre_mlir.dialects.spyre.attributes import DeviceTensor, DeviceTensorType, SpaceAttr
from spyre_mlir.dialects.spyre.hints import hint_of
from spyre_mlir.dialects.spyre.kernel_view import ViewOp
from spyre_mlir.dialects.target import spec_of
from spyre_mlir.errors import LoweringError
from spyre_mlir.hw.cost import mac_rate
from spyre_mlir.hw.cost_parameters import CostParameters
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.hw.sticks import StickAccess, StickError, StickLayout, access
from spyre_mlir.ops.hardware_functions import COPY
from spyre_mlir.transforms.kernel_to_superdsc.descriptors import kernel_work
from spyre_mlir.transforms.utils.cost_numbers import given_numbers
from spyre_mlir.transforms.utils.kernels.launches import Launches, launch_numbers, one_launch


@dataclass(frozen=True)
class ViewCopiesPass(ModulePass):
    """Replaces copies between a restickify and a product by views.

    Attributes:
        numbers: of the cost model that differ from its calibrated profile, as ``name=value``.
    """

    name = "view-copies"

    numbers: tuple[str, ...] = ()

    @override
    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Look at the copies of every function."""
        spec, parameters = spec_of(ctx, op), given_numbers(self.numbers)
        for function in functions(op):
            block = function.body.block
            launches = launch_numbers(block)
            for copy in [o for o in block.ops if isinstance(o, kernel.ComputeOp) and o.function_name == COPY]:
                if (product := _product_behind(copy, launches)) is not None:
                    _view(copy, product, spec, parameters)


def _product_behind(copy: kernel.ComputeOp, launches: Launches) -> kernel.ComputeOp | None:
    """Return the product that alone reads a copy of what a restickify alone wrote, all in one launch."""
    if len(copy.inputs) != 1 or copy.tensors[0].format != copy.tensors[1].format or hint_of(copy) is not None:
        return None
    source, result = copy.inputs[0], copy.output
    made, used = _kernels_of(source), _kernels_of(result)
    writers = [op for op in made if op.output is source]
    if [type(op) for op in writers] != [kernel.RestickifyOp] or len(used) != 2 or not one_launch(made + used, launches):
        return None
    readers = [op for op in used if isinstance(op, kernel.ComputeOp) and op.is_product and op.inputs[0] is result]
    return readers[0] if readers else None


def _kernels_of(value: SSAValue) -> list[kernel.KernelOp]:
    """The kernels that use a buffer in device memory; none if it is no such buffer, or if others use it too."""
    if not isinstance(value.owner, kernel.AllocOp) or kernel.device_tensor(value).space != "hbm":
        return []
    users = [use.operation for use in value.uses]
    found = [op for op in users if isinstance(op, kernel.KernelOp) and op.parent is value.owner.parent]
    return found if len(found) == len(users) else []


def _view(copy: kernel.ComputeOp, product: kernel.ComputeOp, spec: SpyreSpec, parameters: CostParameters) -> None:
    """Let a product read a view of what is copied for it, if that leaves its rate as it was."""
    source, result = copy.inputs[0], copy.output
    seen = _lying_as(copy)
    if seen is None or not isinstance(source.owner, kernel.AllocOp) or (block := copy.parent_block()) is None:
        return
    before, loops = _product_ns(product, spec, parameters), product.space
    view = ViewOp(source, DeviceTensorType(seen))
    view.location, view.result.name_hint = copy.location, result.name_hint
    block.insert_op_after(view, source.owner)
    product.operands[0] = view.result
    product.space = _batch_outermost(product)
    try:
        product.verify_()
        gains = _product_ns(product, spec, parameters) <= before
    except (LoweringError, StickError, VerifyException):
        gains = False
    if not gains:
        product.operands[0], product.space = result, loops
        Rewriter.erase_op(view)
        return
    for op in (copy, result.owner):
        if isinstance(op, kernel.ComputeOp | kernel.AllocOp):
            Rewriter.erase_op(op)


def _batch_outermost(product: kernel.ComputeOp) -> SpaceAttr:
    """Return the loops of a product with those of its rows as they nest in its left operand: the last are the rows.

    The ones before it are a batch, which lies outside of the rows so.
    """
    left, right, result = (index.names for index in product.maps.data)
    strides, dims = product.accesses()[0].strides, list(product.space.data)
    places = [number for number, d in enumerate(dims) if d.name in (left & result) - right]
    nested = sorted([dims[place] for place in places], key=lambda d: -strides[d.name])
    for place, dim in zip(places, nested, strict=True):
        dims[place] = dim
    return SpaceAttr(tuple(dims))


def _product_ns(product: kernel.ComputeOp, spec: SpyreSpec, parameters: CostParameters) -> float:
    """Return the arithmetic time of a product as far as it depends on where its batches lie."""
    loops = kernel_work(product).product
    return 0.0 if loops is None else loops.macs / mac_rate(loops, spec.cores_per_card, parameters)


def _lying_as(copy: kernel.ComputeOp) -> DeviceTensor | None:
    """Return the type of a copy that would have every element where it lies in the original; None if there is none."""
    (read, _), (whole, tensor) = copy.accesses(), copy.tensors
    steps = _steps(copy, tensor, read.strides)
    if steps is None or read.offset:
        return None
    layout = _with_steps(tensor, steps)
    if layout is None or layout.sticks(tensor.lanes) > whole.sticks:
        return None
    found = replace(tensor, layout=layout)
    try:
        made = access(layout, tensor.lanes, copy.maps.data[-1].data, copy.space.extents)
    except StickError:
        return None
    return found if (made.offset, made.lane) == (0, read.lane) and _moves(copy, made) == _moves(copy, read) else None


def _moves(copy: kernel.ComputeOp, walked: StickAccess) -> dict[str, int]:
    """The strides of the loops that take more than one step."""
    padded, lanes = copy.padded_extents(), copy.tensors[-1].lanes
    return {n: by for n, by in walked.strides.items() if padded[n] > (lanes if n == walked.lane else 1)}


def _steps(copy: kernel.ComputeOp, tensor: DeviceTensor, strides: Mapping[str, int]) -> dict[int, int] | None:
    """Return by dimension of a copy the sticks between neighbours, so that its loops have these strides."""
    steps = dict[int, int]()
    for dim, expr in enumerate(copy.maps.data[-1].data):
        unit = tensor.lanes if dim == tensor.layout.stick else 1
        for name, times in expr.terms:
            count = max(times // unit, 1)
            if copy.space.extents[name] <= (unit if times < unit else 1):
                continue  # one step
            if strides.get(name, 0) % count or steps.setdefault(dim, strides.get(name, 0) // count) == 0:
                return None
    return steps


def _with_steps(tensor: DeviceTensor, steps: Mapping[int, int]) -> StickLayout | None:
    """Return the layout of a tensor with so many sticks between neighbours; None if dimensions do not nest so."""
    layout = tensor.layout
    moved = sorted(steps, key=lambda dim: -steps[dim])
    order = (*moved, *(d for d in layout.order if d not in steps))
    extents = list(layout.extents)
    for outer, dim in zip((None, *moved), moved, strict=False):
        if outer is not None and steps[outer] % steps[dim]:
            return None
        reserved = extents[dim] if outer is None else steps[outer] // steps[dim]
        extents[dim] = reserved * (tensor.lanes if outer is not None and dim == layout.stick else 1)
    found = replace(layout, order=order, extents=tuple(extents))
    fits = all(have >= need for have, need in zip(extents, tensor.shape, strict=True))
    return found if fits and {d: found.strides(tensor.lanes)[d] for d in steps} == dict(steps) else None
