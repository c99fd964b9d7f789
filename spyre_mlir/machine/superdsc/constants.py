"""Values of the constants of a file."""

from __future__ import annotations

from math import isinf

import numpy as np

from spyre_mlir.dialects.superdsc.model.descriptor import Constant, Descriptor
from spyre_mlir.hw.formats import FP32, INT32
from spyre_mlir.hw.number_formats import dl16
from spyre_mlir.ops.hardware_functions import function_of


def decode_constant(constant: Constant) -> float:
    """Return the value of a constant's bit pattern."""
    if constant.format == FP32.name:
        return float(np.asarray([constant.bits], dtype=np.uint32).view(np.float32)[0])
    if constant.format == INT32.name:
        return float(np.asarray([constant.bits], dtype=np.uint32).view(np.int32)[0])
    # Every other format's constants are written as DL16 codes; torch-spyre csrc/module.cpp; certain.
    return float(dl16.decode([constant.bits])[0])


def mask_value(view: Descriptor, *, unbounded: bool) -> float:
    """Return the value that stands in for padding.

    Args:
        view: the operation; it has a mask constant.
        unbounded: whether its numbers may lie beyond DL16's. The largest of DL16 then stands for infinity, as a row
            of which all is masked holds less.
    """
    constant, function = view.constants[view.mask_constant], function_of(view.op_func)
    if unbounded and function is not None and isinf(function.neutral) and constant.bits in function.mask_words:
        return function.neutral
    return decode_constant(constant)
