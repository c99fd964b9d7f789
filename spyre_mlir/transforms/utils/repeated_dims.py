"""Dimensions along which a value of a program repeats, as `expand` and `repeat` make them.

Decision: docs/decisions/0236-rows-that-an-index-names-are-a-product.md
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.ir import SSAValue

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.tensors import shape_of
from spyre_mlir.ops.annotations import Ints
from spyre_mlir.ops.native import movement, views


def repeated_dims(value: SSAValue) -> Ints:
    """Return the dimensions along which all entries of a tensor are known to be equal, in ascending order."""
    shape, op = shape_of(value), value.owner
    single = [d for d, extent in enumerate(shape) if extent == 1]
    if not isinstance(op, AtenOp) or op.entry not in (views.expand, views.view, movement.clone):
        return tuple(single)
    source = op.operands[0]
    inner, before = repeated_dims(source), shape_of(source)
    if op.entry is views.view:
        return tuple(_of_reshape(before, inner, shape))
    missing = len(shape) - len(before)  # dimensions that `expand` puts in front
    return (*range(missing), *(d + missing for d in inner))


def _of_reshape(before: Ints, repeated: Sequence[int], after: Ints) -> list[int]:
    """The dimensions of a tensor in another shape that are made of repeated ones alone."""
    found, at = [d for d, extent in enumerate(after) if extent == 1], 0
    for dim, extent in enumerate(after):
        start, taken = at, list[int]()
        while at < len(before) and prod(before[start:at]) < extent:
            taken.append(at)
            at += 1
        if prod(before[start:at]) != extent:
            return sorted(found)  # what follows is not split where the tensor was
        if extent > 1 and all(d in repeated for d in taken):
            found.append(dim)
    return sorted(found)


__all__ = ["repeated_dims"]
