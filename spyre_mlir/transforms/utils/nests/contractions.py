"""Recognition of matmuls and of their weights among nests of the loop level."""

from __future__ import annotations

from xdsl.dialects.builtin import AnyFloat, Float8E4M3FNType
from xdsl.ir import BlockArgument, SSAValue

from spyre_mlir.dialects.spyre.loop import NestOp, body_function, combiner
from spyre_mlir.dialects.tensors import element_of
from spyre_mlir.ops.native import pointwise, reductions


def is_contraction(op: NestOp) -> bool:
    """Return whether a nest adds up products of its inputs."""
    if op.combine is None or body_function(op.body.block) is not pointwise.mul:
        return False
    return combiner(op.combine.data) is reductions.sum


def is_weight(value: SSAValue) -> bool:
    """Return whether a value is an argument in numbers that a product takes as they are."""
    element = element_of(value)
    return (
        isinstance(value, BlockArgument) and isinstance(element, AnyFloat) and not isinstance(element, Float8E4M3FNType)
    )


__all__ = ["is_contraction", "is_weight"]
