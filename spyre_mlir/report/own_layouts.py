"""Inputs and results that lie otherwise than torch-spyre places a tensor."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument

from spyre_mlir.backend.weights import argument_names
from spyre_mlir.dialects.argument_notes import PREPARED_KINDS, kind_of
from spyre_mlir.dialects.spyre.attributes import DeviceTensor
from spyre_mlir.dialects.spyre.kernel import FromDeviceOp, ToDeviceOp, device_tensor

OWN_LAYOUTS = "inputs and results that lie otherwise than torch-spyre places them"


def own_layouts(program: ModuleOp) -> tuple[str, ...]:
    """Return a line for each input and result of a host program that has not the default layout, weights left out."""
    found: dict[str, None] = {}
    for function in program.ops:
        if isinstance(function, func.FuncOp) and function.body.blocks:
            found |= dict.fromkeys(_lines(function))
    return tuple(found)


def _lines(function: func.FuncOp) -> Iterator[str]:
    names, returned = argument_names(function), function.get_return_op()
    for op in function.walk():
        if isinstance(op, ToDeviceOp) and isinstance(op.source, BlockArgument):
            number, tensor = op.source.index, device_tensor(op.result)
            if kind_of(function, number) not in PREPARED_KINDS and not tensor.is_default:
                yield f"{names[number]}: {_text(tensor)}"
        elif isinstance(op, FromDeviceOp) and not device_tensor(op.source).is_default:
            uses = [u.index for u in op.result.uses if u.operation is returned]
            yield from (f"result {number}: {_text(device_tensor(op.source))}" for number in uses)


def _text(tensor: DeviceTensor) -> str:
    sizes, walked = tensor.layout.device_sizes(tensor.shape, tensor.lanes)
    arranged = "" if tensor.arrangement == "standard" else f", {tensor.arrangement}"
    return f"{tensor.format}, device_size {sizes}, stride_map {walked}{arranged}"


__all__ = ["OWN_LAYOUTS", "own_layouts"]
