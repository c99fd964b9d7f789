"""What computes in DL16 although float32 was to be kept: found in the kernels, told once."""

from __future__ import annotations

import warnings
from collections import Counter

from xdsl.dialects.builtin import ModuleOp, f32

from spyre_mlir.dialects.places import source_of
from spyre_mlir.dialects.spyre import kernel, loop
from spyre_mlir.dialects.tensors import as_tensor_type, element_of
from spyre_mlir.hw.formats import DL16
from spyre_mlir.ops import ATEN
from spyre_mlir.transforms.buffers import Step
from spyre_mlir.transforms.fallback import frames_of_ours


class NarrowedWarning(UserWarning):
    """Some functions compute in DL16 although float32 was to be kept."""


def is_narrowed(step: Step) -> bool:
    """Whether a step computes float32 of the model in DL16 because its function has no other form."""
    entry, origin = ATEN.by_opfunc(step.function), step.origin
    if entry is None or entry.fp32 or step.output[0].format != DL16.name:
        return False
    return isinstance(origin, loop.NestOp) and element_of(origin.result) == f32


def narrowed(module: ModuleOp) -> Counter[str]:
    """Hardware functions that compute in DL16 although float32 was to be kept, with the number of their kernels."""
    ops = [op for op in module.walk() if isinstance(op, kernel.ComputeOp) and kernel.NARROWED in op.attributes]
    return Counter(op.function_name for op in ops)


def narrowed_text(module: ModuleOp) -> str:
    """What people are told about them; nothing if there are none."""
    found = narrowed(module)
    if not found:
        return ""
    listed = "".join(f"\n  {count} x {name}" for name, count in sorted(found.items()))
    return f"{found.total()} kernels compute in DL16, as the hardware has no form of them on float32\n{listed[1:]}"


def tell_narrowed(module: ModuleOp) -> None:
    """Warns once about all of them."""
    text = narrowed_text(module)
    if text:
        warnings.warn(text, NarrowedWarning, stacklevel=frames_of_ours())


def would_be_kept(module: ModuleOp, function: str, line: str | None) -> bool:
    """Whether something would be float32 on the device if that were kept.

    Args:
        module: the program, at the aten level.
        function: the hardware function that computes it; empty for a tensor that the host sends.
        line: the line of the model it comes from; None if that is not known.
    """
    entry = ATEN.by_opfunc(function)
    if function and (entry is None or not entry.fp32):
        return False
    ops = [op for op in module.walk() if line is None or str(source_of(op.location) or "") == line]
    types = [as_tensor_type(v.type) for op in ops for v in (*op.operands, *op.results)]
    return any(t is not None and t.get_element_type() == f32 for t in types)
