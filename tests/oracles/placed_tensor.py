"""A tensor as torch-spyre places it on the card: sizes of its dimensions there, and where each element lies.

Written from the published rule of `SpyreTensorLayout`; it imports nothing of the compiler. The dimensions on the card
are those of the tensor, the first of them next to the sticks; the last dimension counts sticks among them, and is the
lanes of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

LANES = 64

Numbers = NDArray[np.float64]


def device_layout(shape: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return `device_size` and `stride_map` of a dense tensor of 16-bit elements."""
    if not shape:
        return [1, LANES], [-1, -1]
    order = list(range(len(shape)))
    host = [*order[1:], order[0], order[-1]] if len(order) > 1 else [0, 0]
    sizes = [-(-shape[d] // LANES) if d == order[-1] else shape[d] for d in host[:-1]] + [LANES]
    strides = [0] * len(host)
    seen = dict[int, int]()
    for place in reversed(range(len(host))):
        dim = host[place]
        strides[place] = seen[dim] * LANES if dim in seen else prod(shape[dim + 1 :])
        seen[dim] = strides[place]
        if shape[dim] == 1:
            strides[place] = -1
    return sizes, strides


def placed(values: Numbers, behind: float) -> Numbers:
    """Return the sticks of a tensor, [sticks, lanes]; padding holds `behind`."""
    out = np.full((prod(device_layout(values.shape)[0][:-1]), LANES), behind)
    for index, (stick, lane) in places(values.shape):
        out[stick, lane] = values[index]
    return out


def read_back(sticks: Numbers, shape: Sequence[int]) -> Numbers:
    """Return the tensor that sticks hold."""
    out = np.zeros(tuple(shape))
    for index, at in places(shape):
        out[index] = sticks[at]
    return out


def places(shape: Sequence[int]) -> list[tuple[tuple[int, ...], tuple[int, int]]]:
    """Return each index of a tensor with its stick and lane."""
    sizes, _ = device_layout(shape)
    found: list[tuple[tuple[int, ...], tuple[int, int]]] = []
    for index in product(*map(range, shape)):
        last = index[-1] if index else 0
        outer = [*index[1:-1], last // LANES, index[0]] if len(index) > 1 else [last // LANES]
        stick = 0
        for coordinate, size in zip(outer, sizes, strict=False):
            stick = stick * size + coordinate
        found.append((index, (stick, last % LANES)))
    return found
