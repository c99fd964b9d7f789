"""Predicted times of single kernels."""

from __future__ import annotations

from math import inf

from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.errors import LoweringError
from spyre_mlir.hw.cost import total_us
from spyre_mlir.hw.cost_parameters import CostParameters
from spyre_mlir.transforms.kernel_to_superdsc.descriptors import kernel_work


def kernel_us(op: kernel.KernelOp, parameters: CostParameters) -> float:
    """Return the microseconds of a kernel as it is divided; infinity if no file can hold it, which its conversion says.

    Args:
        op: the kernel.
        parameters: of the cost model.
    """
    try:
        return total_us(kernel_work(op), parameters)
    except LoweringError:
        return inf


__all__ = ["kernel_us"]
