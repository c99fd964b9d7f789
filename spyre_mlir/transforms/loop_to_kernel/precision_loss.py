"""Precision loss of programs that keep float32: DL16 computations, of all floats or of those that start from integers.

Found in the kernels, told once.
"""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import PurePath

from xdsl.dialects.builtin import ModuleOp, f32
from xdsl.ir import Operation

from spyre_mlir.dialects.ir.modules import ops_in
from spyre_mlir.dialects.places import source_of
from spyre_mlir.dialects.spyre import kernel, loop
from spyre_mlir.dialects.tensors import as_tensor_type, element_of
from spyre_mlir.errors import frames_of_ours
from spyre_mlir.hw.formats import DL16
from spyre_mlir.ops import ATEN
from spyre_mlir.sizes import counted
from spyre_mlir.transforms.loop_to_kernel.buffers import PlannedKernel
from spyre_mlir.transforms.utils.numerics.integer_origins import Origins
from spyre_mlir.transforms.utils.rebuild import describe_location


class NarrowedWarning(UserWarning):
    """Some functions compute in DL16 although float32 is to be kept."""


class RoundedWarning(UserWarning):
    """Some functions read possibly large numbers that start from integers in DL16."""


def is_rounded(step: PlannedKernel, origins: Origins) -> bool:
    """Return whether a step rounds numbers from integers that may be large: its function has no form on float32."""
    entry, origin = ATEN.by_opfunc(step.function), step.origin
    if entry is None or entry.fp32 or not isinstance(origin, loop.NestOp):
        return False
    return origins.rounds(origin)


def is_narrowed(step: PlannedKernel) -> bool:
    """Return whether a step computes the model's float32 in DL16 because its function has no other form."""
    entry, origin = ATEN.by_opfunc(step.function), step.origin
    if entry is None or entry.fp32 or step.output[0].format != DL16.name:
        return False
    return isinstance(origin, loop.NestOp) and element_of(origin.result) == f32


def narrowed(module: ModuleOp) -> Counter[str]:
    """Return hardware functions that compute in DL16 although float32 is to be kept, with their kernel counts."""
    ops = [op for op in ops_in(module) if isinstance(op, kernel.ComputeOp) and op.narrowed is not None]
    return Counter(op.function_name for op in ops)


@dataclass(frozen=True)
class PrecisionLosses:
    """Messages about kernels that lose precision; empty if there are none.

    Attributes:
        narrowed: about those that compute in DL16 although float32 is to be kept.
        rounded: about those that round numbers made from integers.
    """

    narrowed: str = ""
    rounded: str = ""

    @staticmethod
    def of(module: ModuleOp) -> PrecisionLosses:
        """Return the messages about a module at the kernel level."""
        return PrecisionLosses(narrowed_text(module), rounded_text(module))

    def tell(self) -> None:
        """Warn once about all kernels of either kind."""
        for text, category in ((self.narrowed, NarrowedWarning), (self.rounded, RoundedWarning)):
            if text:
                warnings.warn(text, category, stacklevel=frames_of_ours())


def narrowed_text(module: ModuleOp) -> str:
    """Return the message about these functions; empty if there are none."""
    found = narrowed(module)
    if not found:
        return ""
    listed = "".join(f"\n  {count} x {name}" for name, count in sorted(found.items()))
    compute = counted(found.total(), "kernel", "compute")
    return f"{compute} in DL16, as the hardware has no form of them on float32\n{listed[1:]}"


def rounded_text(module: ModuleOp) -> str:
    """Return the message about kernels that round values from integers; empty if there are none."""
    ops = [op for op in ops_in(module) if isinstance(op, kernel.ComputeOp) and op.rounded is not None]
    if not ops:
        return ""
    found = Counter(f"{op.function_name} at {describe_location(op)}" for op in ops)
    listed = "".join(f"\n  {count} x {name}" for name, count in found.items())
    return (
        f"{counted(len(ops), 'kernel', 'round')} positions, counts or other numbers made from integers to DL16, which "
        f"has ten significant bits, as the hardware has no form of them on float32{listed}"
    )


def _is_at(op: Operation, line: str) -> bool:
    source = source_of(op.location)
    return line in (str(source), f"{PurePath(source.file or '').name}:{source.line}")


def would_be_kept(module: ModuleOp, function: str, line: str | None) -> bool:
    """Return whether `keep_float32` would keep anything in float32 on the device.

    Args:
        module: the program, at the aten level.
        function: the hardware function that computes it; empty for a tensor that the host sends.
        line: the line of the model it comes from, whole or as ``file.py:12``; None if that is not known.
    """
    entry = ATEN.by_opfunc(function)
    if function and (entry is None or not entry.fp32):
        return False
    ops = [op for op in module.walk() if line is None or _is_at(op, line)]
    types = [as_tensor_type(v.type) for op in ops for v in (*op.operands, *op.results)]
    return any(t is not None and t.get_element_type() == f32 for t in types)
