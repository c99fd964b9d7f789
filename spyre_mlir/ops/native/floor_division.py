"""Floor division of two integers, a part of other operations; the device computes it in several steps.

Decision: docs/decisions/0057-floor-division.md
"""

from __future__ import annotations

from spyre_mlir.ops.annotations import Lanes, np
from spyre_mlir.ops.aten import ATEN

# Called by compositions: ATen has one overload for floats and integers, and it may wrap.
FLOOR_DIVIDE_INTEGERS = "spyre::floor_divide_integers"


@ATEN.pointwise(aten=[FLOOR_DIVIDE_INTEGERS], scalar="arith.floordivsi")
def floor_divide_integers(self: Lanes, other: Lanes) -> Lanes:
    """The largest integer not above `self` / `other`, for integers; exact for all that FP32 holds."""
    divisor = np.where(other == 0, 1, other)
    return np.where(other == 0, 0, np.floor_divide(self, divisor))
