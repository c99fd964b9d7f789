"""The order of rows that become the lanes of FP32 sticks, as a widening of DL16 sticks leaves it."""

from __future__ import annotations

from collections.abc import Sequence

from spyre_mlir.dialects.spyre.attributes import IterDim
from spyre_mlir.hw.arrangement import SLICE_BYTES, WIDENED, block
from spyre_mlir.hw.formats import FP32
from spyre_mlir.hw.sticks import UNIT, IndexMap, LinearExpr, round_up
from spyre_mlir.transforms.kernel_to_superdsc.descriptors import MOST_LOOPS

# Elements that a widening keeps together: half a slice of the narrow format, and a slice of the wide one.
HALF_SLICE = SLICE_BYTES * 8 // FP32.bits


def widened_rows(shape: Sequence[int], dim: int) -> tuple[tuple[IterDim, ...], IndexMap, IndexMap]:
    """Return loops over a tensor, and maps onto it: `dim` in its own order, and in that of FP32 lanes.

    The loops walk whole sticks of `dim`: what a buffer may reserve beyond them holds nothing of the tensor.
    """
    half, inner = FP32.elements_per_stick(), HALF_SLICE
    whole, part = block(half, WIDENED), half // inner
    extent = round_up(shape[dim], whole)
    loops = [IterDim("h", 2), IterDim("g", part), IterDim("e", inner)]
    plain, kept = (("g", 2 * inner), ("h", inner), ("e", 1)), (("h", half), ("g", inner), ("e", 1))
    if extent > whole:  # a loop less otherwise: a file has few labels for them
        loops.insert(0, IterDim("p", extent // whole))
        plain, kept = (("p", whole), *plain), (("p", whole), *kept)
    others = [IterDim(f"d{d}", e) for d, e in enumerate(shape) if d != dim]
    own = [LinearExpr.of(f"d{d}") if e > 1 else LinearExpr() for d, e in enumerate(shape)]
    in_order, in_lanes = (tuple(LinearExpr(0, e) if d == dim else o for d, o in enumerate(own)) for e in (plain, kept))
    return tuple(d for d in (*others, *loops) if d.extent > 1), in_order, in_lanes


def reorderings(shape: Sequence[int], dim: int, stick: int) -> list[tuple[tuple[IterDim, ...], IndexMap, IndexMap]]:
    """Return what `widened_rows` returns, once or for each index of a dimension where a file has too few labels.

    Args:
        shape: of the tensor.
        dim: whose rows are brought into the other order.
        stick: the dimension in the sticks, which is walked whole; sticks of one element each take a label, too.
    """
    space, in_order, in_lanes = widened_rows(shape, dim)
    if len(space) + (stick == UNIT) <= MOST_LOOPS:
        return [(space, in_order, in_lanes)]
    others = [d for d, extent in enumerate(shape) if extent > 1 and d not in (dim, stick)]
    apart = min(others, key=lambda d: shape[d])
    rest = tuple(loop for loop in space if loop.name != f"d{apart}")
    return [(rest, _at(in_order, apart, place), _at(in_lanes, apart, place)) for place in range(shape[apart])]


def _at(index: IndexMap, dim: int, place: int) -> IndexMap:
    return tuple(LinearExpr(place) if d == dim else expr for d, expr in enumerate(index))


__all__ = ["HALF_SLICE", "reorderings", "widened_rows"]
