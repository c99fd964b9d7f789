"""Rounding to float8_e4m3fn, the format SEN143_FP8: four significant bits, up to 448, no infinity.

Source: torch-spyre csrc/types_mapping.h maps the two onto each other; certain. Ties go to the even number, and what is
beyond 448 becomes 448, as torch has it.

Decision: docs/decisions/0078-eight-bit-floats-between-two-conversions.md
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from spyre_mlir.hw.formats import FP8_LARGEST


def round_trip(values: NDArray[Any]) -> NDArray[Any]:
    """Return the nearest numbers of the format, in their original type."""
    return encode(values).astype(values.dtype)


def encode(values: NDArray[Any]) -> NDArray[Any]:
    """Return the nearest numbers of the format, in a type of eight bits."""
    wide = np.clip(values, -FP8_LARGEST, FP8_LARGEST)
    return wide.astype(np.float32).astype(ml_dtypes.float8_e4m3fn)
