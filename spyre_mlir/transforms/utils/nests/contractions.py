"""Recognition of matmuls among nests of the loop level."""

from __future__ import annotations

from spyre_mlir.dialects.spyre.loop import NestOp, body_function, combiner
from spyre_mlir.ops.native import pointwise, reductions


def is_contraction(op: NestOp) -> bool:
    """Return whether a nest adds up products of its inputs."""
    if op.combine is None or body_function(op.body.block) is not pointwise.mul:
        return False
    return combiner(op.combine.data) is reductions.sum


__all__ = ["is_contraction"]
