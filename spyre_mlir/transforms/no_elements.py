"""Tensors without elements: what may not meet one on its way to the device."""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.ir import SSAValue

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.tensors import as_tensor_type, shape_of
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.ops import movement
from spyre_mlir.ops.table import Family
from spyre_mlir.transforms.host_steps import is_marked
from spyre_mlir.transforms.rebuild import describe_location, tell_origin


def check_not_empty(function: func.FuncOp) -> None:
    """Raises UnsupportedError if an op computes on a tensor without elements; views, `cat` and results may be one."""
    for op in function.body.block.ops:
        if isinstance(op, func.ReturnOp):
            continue
        entry = op.entry if isinstance(op, AtenOp) else None
        slices = entry is not None and entry.family in (Family.VIEW, Family.CREATION)
        values: list[SSAValue] = [] if entry is movement.cat else list(op.operands)
        results: list[SSAValue] = [] if slices else list(op.results)
        if is_marked(op):
            continue
        for value in [*values, *results]:
            if as_tensor_type(value.type) is not None and 0 in shape_of(value):
                where = f"{op.name} at {describe_location(op)}"
                error = UnsupportedError(
                    f"a tensor without elements, {value.type}", where=where, hint="leave the op out"
                )
                tell_origin(error, op)
                raise error
