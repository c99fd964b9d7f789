"""Functions on 32-bit integers of the device: the words that weights of few bits are packed in.

Decision: docs/decisions/0150-integers-of-few-bits-are-words.md
"""

from __future__ import annotations

from spyre_mlir.ops.annotations import Lanes
from spyre_mlir.ops.aten import ATEN

# Planned by the lowering to kernels alone; integers of the model are floats on the device.
ADD_WORDS = "spyre::add_words"


@ATEN.pointwise(
    aten=[ADD_WORDS],
    opfunc="addi32toi32",
    scalar="arith.addi",
    source="torch-spyre code generation; likely",
)
def add_words(self: Lanes, other: Lanes) -> Lanes:
    """The sum of two 32-bit integers, which has to be one."""
    return self + other
