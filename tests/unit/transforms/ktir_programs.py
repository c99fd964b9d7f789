"""Runs the KTIR of a model on the interpreter of KTIR, with device arrays that are laid out here by hand."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import BlockArgument

from spyre_mlir.dialects.spyre.attributes import DeviceTensor
from spyre_mlir.dialects.spyre.kernel import AllocOp, FromDeviceOp, KernelConstantOp, ToDeviceOp, device_tensor
from spyre_mlir.hw.moves import moved
from spyre_mlir.machine.ktdp import run_ktir
from spyre_mlir.machine.levels.loop import known_numbers
from spyre_mlir.pipeline import lower_to_ktir
from spyre_mlir.text.ktir import ktir_text
from spyre_mlir.text.ktir_program import function_texts, program_text
from spyre_mlir.text.render import parse_module, verify_module
from spyre_mlir.transforms.kernel_to_ktdp.buffer_names import named_buffers
from spyre_mlir.universe import make_context
from tests.oracles.ktir_lines import problems

DTYPES = {"SEN169_FP16": np.float16, "IEEE_FP32": np.float32, "SENUINT32": np.int32, "IEEE_INT32": np.int32}
STICK_BYTES = 128
TOLERANCE = 3e-3  # of the largest number: some ulps of an f16
GARBAGE = 77  # what the host leaves in padding that it was not asked to clear


def in_sticks(values: Any, tensor: DeviceTensor, padding: float, dtype: Any) -> Any:
    """A tensor in sticks: padded, the stick dimension cut, dimensions in the order of the layout, lanes last."""
    lanes, layout = STICK_BYTES // np.dtype(DTYPES[tensor.format]).itemsize, tensor.layout
    full = np.full(layout.extents, padding, dtype)
    full[tuple(slice(0, e) for e in tensor.shape)] = values
    rank, at = full.ndim, layout.stick
    if tensor.arrangement == "dl16_to_fp32":
        full = widened(full, at)
    if at < 0:  # sparse: one element per stick, in lane 0
        cut = np.full((*full.shape, 1, lanes), padding, dtype)
        cut[..., 0, 0] = full
    else:
        split = full.reshape(*full.shape[:at], full.shape[at] // lanes, lanes, *full.shape[at + 1 :])
        split = np.moveaxis(split, at + 1, -1)
        cut = np.full((*split.shape[:-1], layout.unit_extent, lanes), padding, dtype)
        cut[..., 0, :] = split
    # The axes are now the dimensions, the implicit unit dimension, the lanes.
    order = [rank if d < 0 else d for d in layout.order]
    missing = [d for d in range(rank + 1) if d not in order]
    return np.ascontiguousarray(cut.transpose(*missing, *order, rank + 1)).reshape(-1)


def widened(full: Any, at: int) -> Any:
    """Every 64 elements along an axis as widening leaves them: by fours, in turn to one stick of 32 and the next."""
    blocks = np.moveaxis(full, at, -1).reshape(-1, 8, 2, 4)
    turned = blocks.swapaxes(1, 2).reshape(np.moveaxis(full, at, -1).shape)
    return np.moveaxis(turned, -1, at)


def on_device(values: Any, tensor: DeviceTensor, padding: float = GARBAGE) -> Any:
    """A tensor as the host sends it; beyond the largest half it is infinite, as after a cast of torch's."""
    with np.errstate(over="ignore"):
        return in_sticks(values, tensor, padding, DTYPES[tensor.format])


def from_device(stored: Any, tensor: DeviceTensor) -> Any:
    """The logical elements of a tensor in sticks."""
    count = int(np.prod(tensor.shape))
    numbered = in_sticks(np.arange(1, count + 1).reshape(tensor.shape), tensor, 0, np.int64)
    places = np.flatnonzero(numbered)
    result = np.zeros(count, np.asarray(stored).dtype)
    result[numbered[places] - 1] = np.asarray(stored).reshape(-1)[places]
    return result.reshape(tensor.shape)


@dataclass
class Program:
    """A KTIR program beside the kernels it comes from.

    Attributes:
        text: the KTIR.
        kernels: the function at the kernel level: it says what the buffers are.
        arrays: device memory by name of the buffer.
    """

    text: str
    kernels: FuncOp
    arrays: dict[str, Any] = field(default_factory=dict[str, Any])

    def run(self, inputs: list[Any]) -> list[Any]:
        """The outputs for some inputs."""
        module = parse_module(self.text.encode(), make_context(), "program")
        assert [p for text in function_texts(module).values() for p in problems(text)] == []
        verify_module(module)
        again = parse_module(ktir_text(module).encode(), make_context(), "again")
        assert ktir_text(again) == ktir_text(module)
        blank = self.fill(inputs)
        for function in module.ops:
            assert isinstance(function, FuncOp)
            names = [str(a.name_hint) for a in function.args]
            given = {n: self.arrays[n] for n in names}
            self.arrays |= run_ktir(module, function.sym_name.data, given, blank=[n for n in names if n in blank])
            blank -= set(names)
        return self.outputs()

    def fill(self, inputs: list[Any]) -> set[str]:
        """Lays the inputs out; gives the names of the outputs."""
        names, blank = named_buffers(self.kernels), set[str]()
        for value, name in names.items():
            tensor, op = device_tensor(value), value.owner
            match op:
                case ToDeviceOp():
                    assert isinstance(op.source, BlockArgument)
                    padding = 0 if op.zero_padding is not None else GARBAGE
                    self.arrays[name] = on_device(moved(np.asarray(inputs[op.source.index]), op.moves), tensor, padding)
                case KernelConstantOp():
                    self.arrays[name] = on_device(known_numbers(op.value, tensor.shape, op), tensor, 0)
                case _:
                    assert isinstance(op, AllocOp)
                    self.arrays[name] = on_device(np.full(tensor.shape, GARBAGE), tensor)
                    if any(isinstance(use.operation, FromDeviceOp) for use in value.uses):
                        blank.add(name)
        return blank

    def outputs(self) -> list[Any]:
        """The outputs, None for one that is an argument of the model."""
        names, found = named_buffers(self.kernels), list[Any]()
        end = self.kernels.body.block.last_op
        assert isinstance(end, ReturnOp)
        for value in end.operands:
            if not isinstance(value.owner, FromDeviceOp):
                found.append(None)  # an argument of the model, which no kernel makes
                continue
            source = value.owner.source
            found.append(from_device(self.arrays[names[source]], device_tensor(source)))
        return found


def program_of(kernels: str, ktir: str) -> Program:
    """A program from the text of its kernels and of its KTIR."""
    module = parse_module(kernels.encode(), make_context(), "kernels")
    return Program(ktir, next(op for op in module.ops if isinstance(op, FuncOp)))


def half(*shape: int) -> torch.Tensor:
    """Random numbers, the same ones for a shape."""
    generator = torch.Generator().manual_seed(sum(shape) + len(shape))
    return torch.randn(shape, dtype=torch.float16, generator=generator)


def ktir_of(kernels: str) -> str:
    """The KTIR of a program at the kernel level."""
    context = make_context()
    module = parse_module(kernels.encode(), context, "kernels")
    verify_module(module)
    return program_text(lower_to_ktir(module, context))
