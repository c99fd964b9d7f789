"""Loops of a kernel op as the division of work takes them: pieces that stay together, and operands' strides."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import replace

from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.attributes import SpaceAttr
from spyre_mlir.hw.division import DividedLoop, Footprint
from spyre_mlir.ops.table import Family


def loops_of(op: kernel.KernelOp) -> list[DividedLoop]:
    """Return the loops of an op, in the pieces that the hardware can divide."""
    padded, pieces, undivided = op.padded_extents(), op.divisible_pieces(), whole_loops(op)
    kept = op.maps.data[-1].names
    loops: list[DividedLoop] = []
    for dim in op.space.data:
        unit = pieces.get(dim.name, 1)
        units = padded[dim.name] // unit if padded[dim.name] % unit == 0 else 1
        loops.append(DividedLoop(dim.name, units, dim.name in kept, dim.name not in undivided))
    return loops


def whole_loops(op: kernel.KernelOp) -> dict[str, str]:
    """Return the loops of an op that cannot be divided, with the reason."""
    padded, pieces, undivided = op.padded_extents(), op.divisible_pieces(), op.undivided()
    kept = op.maps.data[-1].names
    is_product = isinstance(op, kernel.ComputeOp) and op.entry.family is Family.CONTRACTION
    found: dict[str, str] = {}
    for dim in op.space.data:
        if padded[dim.name] % pieces.get(dim.name, 1):
            found[dim.name] = f"its {padded[dim.name]} elements are no whole pieces of {pieces[dim.name]}"
        elif dim.name in undivided:
            found[dim.name] = "its elements are found at run time, from one address for all cores"
        elif dim.name not in kept and not is_product:
            found[dim.name] = "the function reduces it, and only products add up partial results of cores"
    return found


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
    """Return the same loops with other splits, in their order: cores are numbered with the first loop fastest."""
    known = {d.name: d for d in space.data}
    return SpaceAttr(tuple(replace(known[name], split=split) for name, split in splits.items()))


def batch_loops(op: kernel.KernelOp) -> Set[str]:
    """Return the loops of a product that are neither its rows, nor its columns, nor its sum."""
    left, right, result = (index.names for index in op.maps.data)
    return (left & right & result) | set(row_loops(op)[:-1])


def row_loops(op: kernel.KernelOp) -> list[str]:
    """Return the loops of a product that walk its first operand and its result alone; the last one is its rows."""
    left, right, result = (index.names for index in op.maps.data)
    return [d.name for d in op.space.data if d.name in (left & result) - right]


def columns_first(op: kernel.KernelOp, splits: Mapping[str, int]) -> Mapping[str, int] | None:
    """Return a division of a product with its cores numbered along the columns first; None if that is no other one.

    So a kernel that walks heads before rows finds the slices that it takes itself.
    """
    left, right, result = (index.names for index in op.maps.data)
    columns = [name for name in splits if name in (right & result) - left and splits[name] > 1]
    others = [name for name in splits if name in left & result and splits[name] > 1]
    if not columns or not others or any(split > 1 for name, split in splits.items() if name not in result):
        return None
    moved = {name: splits[name] for name in columns}
    moved |= {name: split for name, split in splits.items() if name not in moved}
    return None if list(moved) == list(splits) else moved


def last_first(splits: Mapping[str, int]) -> Mapping[str, int] | None:
    """Return a division with its cores numbered along the last divided loop first; None if that is no other one.

    A product that divides its sum numbers them along that first, which is the last loop of what copies its rows.
    """
    divided_loops = [name for name, split in splits.items() if split > 1]
    if len(divided_loops) < 2:
        return None
    last = divided_loops[-1]
    return {last: splits[last], **{name: split for name, split in splits.items() if name != last}}


def counted_along(op: kernel.KernelOp) -> SpaceAttr:
    """Return the loops of a product, those that walk one dimension of its result from the innermost to the outermost.

    Cores are numbered with the first loop fastest. So neighbours get neighbouring slices of such a dimension, as from a
    kernel that walks it in one loop. Columns keep their place, which says what they are.
    """
    dims, (left, right, _) = list(op.space.data), (index.names for index in op.maps.data)
    columns = right - left
    for expr in op.maps.data[-1].data:
        inner_first = [name for name, _ in sorted(expr.terms, key=lambda term: term[1]) if name not in columns]
        places = [number for number, d in enumerate(dims) if d.name in inner_first]
        known = {d.name: d for d in dims}
        for place, name in zip(places, inner_first, strict=True):
            dims[place] = known[name]
    return SpaceAttr(tuple(dims))


__all__ = [
    "batch_loops",
    "columns_first",
    "counted_along",
    "divided",
    "footprints",
    "last_first",
    "loops_of",
    "row_loops",
    "whole_loops",
]
