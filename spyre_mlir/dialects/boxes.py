"""Parts of tensors that nests or kernels walk, from the first to the last index of every dimension."""

from __future__ import annotations

from spyre_mlir.dialects.spyre.attributes import IndexMapAttr
from spyre_mlir.dialects.spyre.kernel import KernelOp
from spyre_mlir.dialects.spyre.loop import NestOp

Box = tuple[tuple[int, int], ...]  # per dimension the first and the last index


def box_of(op: NestOp | KernelOp, index: IndexMapAttr) -> Box:
    """Return the part of a tensor that a nest or a kernel walks through a map."""
    extents = op.space.extents
    return tuple((expr.first(extents), expr.last(extents)) for expr in index.data)


def overlap(one: Box, other: Box) -> bool:
    """Return whether two parts of a tensor have a place in common."""
    return all(a <= d and c <= b for (a, b), (c, d) in zip(one, other, strict=True))


__all__ = ["Box", "box_of", "overlap"]
