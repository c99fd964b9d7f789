"""Named scalars of a function: from a number to the word a file holds."""

from __future__ import annotations

import numpy as np

from spyre_mlir.dialects.superdsc.model.descriptor import Constant
from spyre_mlir.errors import EmitError
from spyre_mlir.hw.formats import DL16, FP32
from spyre_mlir.hw.number_formats import dl16

MASK = "samv-maskvalue"


def named_constant(name: str, value: float, format_name: str = DL16.name) -> Constant:
    """Return the constant of a number in an operation of a format.

    A format other than FP32 has its constants as DL16 codes (torch-spyre csrc/module.cpp; certain).

    Raises:
        EmitError: the number is no number.
    """
    if np.isnan(value):
        raise EmitError(f"constant {name} is not a number")
    if format_name == FP32.name:
        return Constant(name, format_name, int(np.float32(value).view(np.uint32)))
    return Constant(name, format_name, int(dl16.encode([value])[0]))
