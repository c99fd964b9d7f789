"""Loops of a kernel op as the division of work takes them: pieces that stay together, and operands' strides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.attributes import SpaceAttr
from spyre_mlir.hw.division import DividedLoop, Footprint
from spyre_mlir.ops.table import Family


def loops_of(op: kernel.KernelOp) -> list[DividedLoop]:
    """Return the loops of an op, in the pieces that the hardware can divide."""
    padded, pieces, undivided = op.padded_extents(), op.divisible_pieces(), op.undivided()
    kept = op.maps.data[-1].names
    is_product = isinstance(op, kernel.ComputeOp) and op.entry.family is Family.CONTRACTION
    loops: list[DividedLoop] = []
    for dim in op.space.data:
        unit = pieces.get(dim.name, 1)
        whole = padded[dim.name] % unit == 0
        may = whole and dim.name not in undivided and (dim.name in kept or is_product)
        loops.append(DividedLoop(dim.name, padded[dim.name] // unit if whole else 1, dim.name in kept, may))
    return loops


def footprints(op: kernel.KernelOp, loops: list[DividedLoop]) -> list[Footprint]:
    """Return the strides of the operands per piece of each loop."""
    padded, out = op.padded_extents(), list[Footprint]()
    for acc, tensor in zip(op.accesses(), op.tensors, strict=True):
        strides, piece = dict[str, int](), 0
        for lp in loops:
            elements, stride = padded[lp.name] // lp.units, acc.strides.get(lp.name, 0)
            steps = elements // tensor.lanes if lp.name == acc.lane else elements
            strides[lp.name] = stride * steps
            piece += stride * (steps - 1)
        out.append(Footprint(strides, piece))
    return out


def divided(space: SpaceAttr, splits: Mapping[str, int]) -> SpaceAttr:
    """Return the same loops with other splits."""
    return SpaceAttr(tuple(replace(d, split=splits[d.name]) for d in space.data))


__all__ = ["divided", "footprints", "loops_of"]
