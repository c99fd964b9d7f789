"""Values of the constants of a file."""

from __future__ import annotations

import numpy as np

from spyre_mlir.dialects.superdsc.model.descriptor import Constant
from spyre_mlir.hw import dl16
from spyre_mlir.hw.formats import FP32, INT32


def decode_constant(constant: Constant) -> float:
    """Return the value of a constant's bit pattern."""
    if constant.format == FP32.name:
        return float(np.asarray([constant.bits], dtype=np.uint32).view(np.float32)[0])
    if constant.format == INT32.name:
        return float(np.asarray([constant.bits], dtype=np.uint32).view(np.int32)[0])
    # Every other format's constants are written as DL16 codes; torch-spyre csrc/module.cpp; certain.
    return float(dl16.decode([constant.bits])[0])
