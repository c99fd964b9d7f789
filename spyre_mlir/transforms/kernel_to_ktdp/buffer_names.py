"""Names of the buffers that KTIR functions point to, with a description of each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from xdsl.dialects import func
from xdsl.dialects.builtin import DictionaryAttr, StringAttr
from xdsl.ir import Attribute, BlockArgument, SSAValue, Use

from spyre_mlir.dialects.argument_notes import NAME
from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.attributes import DeviceTensor
from spyre_mlir.dialects.spyre.kernel_loop import uses_with_tiles
from spyre_mlir.hw.arrangement import STANDARD
from spyre_mlir.transforms.kernel_to_ktdp.function_builder import ELEMENTS


def named_buffers(function: func.FuncOp) -> dict[SSAValue, str]:
    """Return every buffer in device memory with its name: of the model's input or output, else its kind and number."""
    wanted = _wanted(function)
    names, taken = dict[SSAValue, str](), set[str]()
    for op in function.walk():
        if not isinstance(op, kernel.ToDeviceOp | kernel.KernelConstantOp | kernel.AllocOp):
            continue
        buffer = op.result
        kind = "constant" if isinstance(op, kernel.KernelConstantOp) else "buffer"
        name = _word(wanted.get(buffer, kind))
        names[buffer] = _unused(name, taken, numbered=buffer not in wanted)
        taken.add(names[buffer])
    return names


def _wanted(function: func.FuncOp) -> dict[SSAValue, str]:
    """The names the model gives."""
    wanted = dict[SSAValue, str]()
    for op in function.body.block.ops:
        match op:
            case kernel.ToDeviceOp() if isinstance(op.source, BlockArgument):
                given = _given(function.arg_attrs, op.source.index)
                wanted[op.result] = given or op.source.name_hint or f"input{op.source.index}"
            case func.ReturnOp():
                for number, value in enumerate(op.operands):
                    if isinstance(value.owner, kernel.FromDeviceOp):
                        name = _given(function.res_attrs, number) or f"output{number}"
                        wanted.setdefault(value.owner.source, name)
            case _:
                pass
    return wanted


def _given(attributes: Iterable[Attribute] | None, number: int) -> str | None:
    if attributes is None:
        return None
    entry = list(attributes)[number]
    found = entry.data.get(NAME) if isinstance(entry, DictionaryAttr) else None
    return found.data if isinstance(found, StringAttr) else None


def _word(name: str) -> str:
    """A name that MLIR printers keep as it is: letters, digits and `_`, no number after the last `_`."""
    word = re.sub(r"(_+\d+)+$", lambda end: end[0].replace("_", ""), re.sub(r"\W", "_", name)).strip("_") or "buffer"
    return f"v{word}" if word[0].isdigit() else word


def _unused(name: str, taken: set[str], *, numbered: bool) -> str:
    if not numbered and name not in taken:
        return name
    number = 0
    while f"{name}{'' if numbered else 'v'}{number}" in taken:
        number += 1
    return f"{name}{'' if numbered else 'v'}{number}"


def describe_buffers(buffers: Sequence[SSAValue], names: Mapping[SSAValue, str]) -> list[str]:
    """Describe per argument its name, its role, and its shape on the device."""
    return [f"%{names[b]}: {_kind(b)}, {device_shape(kernel.device_tensor(b))}" for b in buffers]


def _kind(buffer: SSAValue) -> str:
    shape = list(kernel.device_tensor(buffer).shape)
    op = buffer.owner
    if isinstance(op, kernel.ToDeviceOp):
        padding = ", padding 0" if op.zero_padding is not None else ""
        written = any(is_written(use) for use in uses_with_tiles(buffer))
        moves = f", rearranged {op.moved}" if op.moved is not None else ""
        return f"input {shape}{moves}{padding}" + (", written by the program" if written else "")
    if isinstance(op, kernel.KernelConstantOp):
        return f"constant {op.value} of shape {shape}, padding 0"
    read = any(isinstance(use.operation, kernel.FromDeviceOp) for use in buffer.uses)
    return f"{'output' if read else 'intermediate'} {shape}"


def is_written(use: Use) -> bool:
    """Return whether a use is the result of a kernel."""
    return isinstance(use.operation, kernel.KernelOp) and use.index == len(use.operation.inputs)


def device_shape(tensor: DeviceTensor) -> str:
    """Return extents and element type of the sticks of a tensor, outermost first."""
    counts = [tensor.layout.count(d, tensor.lanes) for d in tensor.layout.order]
    order = "" if tensor.arrangement == STANDARD else f", elements of sticks in the order {tensor.arrangement}"
    return f"on the device {ELEMENTS.get(tensor.format, tensor.format)}{[*counts, tensor.lanes]}{order}"
