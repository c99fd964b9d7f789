"""Images that convolutions have made, whose channels are in the lanes."""

from __future__ import annotations

from xdsl.ir import SSAValue

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.tensors import shape_of

CONVOLUTIONS = ("convolution", *(f"conv{rank}d{more}" for rank in (1, 2, 3) for more in ("", ".padding")))
# Ops between a convolution and an image, at most: sums, activations and factors.
_MOST_OPS = 16


def is_convolved(image: SSAValue) -> bool:
    """Return whether a convolution has made an image, or one of its shape that it follows from."""
    waiting, seen = [image], {image}
    while waiting and len(seen) <= _MOST_OPS:
        op = waiting.pop(0).owner
        if not isinstance(op, AtenOp):
            continue
        if op.overload in CONVOLUTIONS:
            return True
        before = [v for v in op.operands if v not in seen and shape_of(v) == shape_of(image)]
        waiting += before
        seen |= {*before}
    return False


__all__ = ["CONVOLUTIONS", "is_convolved"]
