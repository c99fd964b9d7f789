"""Device image of a host tensor: sticks of lanes in layout order, padding filled.

The tensor is cut along the outermost dimension of its layout, so that one too large for the host's memory can be laid
out piece by piece.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spyre_mlir.hw.arrangement import STANDARD, as_stored
from spyre_mlir.hw.sticks import UNIT, StickLayout

Array = NDArray[Any]
PIECE_ELEMENTS = 1 << 18  # small beside any model, large beside the cost of a call


def arrange(values: Array, layout: StickLayout, lanes: int, order: str = STANDARD) -> Array:
    """Return the elements of a tensor as [sticks, lanes], in their order inside the sticks; layout padding is 0."""
    padded = np.zeros(layout.extents, values.dtype)
    padded[tuple(slice(0, extent) for extent in values.shape)] = values
    padded = as_stored(padded, layout.stick, order)
    dims = [dim for dim in layout.order if dim != UNIT]
    sticks = np.zeros((*(layout.count(dim, lanes) for dim in layout.order), lanes), values.dtype)
    target = sticks[tuple(0 if dim == UNIT else slice(None) for dim in layout.order)]
    if layout.stick == UNIT:
        target[..., 0] = padded.transpose(dims)
        return sticks.reshape(-1, lanes)
    split, place = list[int](), dict[int, int]()
    for dim, extent in enumerate(layout.extents):
        place[dim] = len(split)
        split += [extent // lanes, lanes] if dim == layout.stick else [extent]
    target[...] = padded.reshape(split).transpose([*(place[dim] for dim in dims), place[layout.stick] + 1])
    return sticks.reshape(-1, lanes)


def pieces(values: Array, layout: StickLayout, lanes: int, order: str = STANDARD) -> Iterator[Array]:
    """Return the result of `arrange` in pieces of whole sticks; `values` is read piece by piece too."""
    outer = layout.order[0] if layout.order else UNIT
    if outer == UNIT or not values.size:
        yield arrange(values, layout, lanes, order)
        return
    count, step = layout.count(outer, lanes), lanes if outer == layout.stick else 1
    if outer == layout.stick and order != STANDARD:
        # Elements that stay together are more than a stick.
        yield arrange(values, layout, lanes, order)
        return
    together = max(1, PIECE_ELEMENTS * count // (layout.sticks(lanes) * lanes))
    for first in range(0, count, together):
        taken = min(together, count - first)
        extents = tuple(taken * step if dim == outer else e for dim, e in enumerate(layout.extents))
        part = tuple(
            slice(first * step, (first + taken) * step) if dim == outer else slice(None) for dim in range(len(extents))
        )
        yield arrange(values[part], replace(layout, extents=extents), lanes, order)
