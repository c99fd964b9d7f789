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


@ATEN.pointwise(
    aten=["spyre::scale_and_shift"],
    opfunc="batchnormfwd",
    fp32=True,
    source="the published list; likely",
)
def scale_and_shift(self: Lanes, scale: Lanes, shift: Lanes) -> Lanes:
    """`scale * self + shift`, in one step: how digits of words get their sign."""
    return scale * self + shift
