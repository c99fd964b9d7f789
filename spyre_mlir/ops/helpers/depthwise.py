"""Convolutions of every channel by itself: sums of taps, or products with banded matrices.

Channels are in the lanes of a sum of taps, columns in those of a product. Taps that are laid side by side bring every
core rows that others have, and those go through device memory. A row of one channel times a matrix [element, place]
that has the taps on its diagonals stays on the core of that channel: the other rows under the window are there too, and
zeros beside the image are entries that the matrix does not have.

Decision: docs/decisions/0164-channels-by-themselves-are-banded-products.md
Decision: docs/decisions/0177-depthwise-convolutions-lie-as-their-neighbours.md
"""

from __future__ import annotations

from math import prod

from spyre_mlir.hw.formats import DL16
from spyre_mlir.ops.annotations import Ints
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.slicing import side_by_side, taken
from spyre_mlir.ops.helpers.sliding_windows import accumulated, bordered, reach, taps
from spyre_mlir.ops.value import Value

# Elements of a stick of DL16, and the longest rows, of images and of results, that are multiplied by a matrix.
_LANES, _WIDEST = DL16.elements_per_stick(), 128
# Taps of a window beyond which gathering them takes longer than to lay the image out again, and the result.
_MOST_TAPS = 25


def by_channel(
    b: Build, input: Value, weight: Value, stride: Ints, padding: tuple[Ints, Ints], dilation: Ints
) -> Value:
    """The convolution of each channel with its own window, channels in the lanes unless windows are large.

    Args:
        b: where to build.
        input: [N, C, places…].
        weight: [C, 1, taps…].
        stride: elements from one place to the next.
        padding: zeros before and behind every dimension.
        dilation: elements from one tap to the next.

    Returns:
        [N, C, places…].
    """
    large = len(stride) == 2 and prod(weight.shape[2:]) > _MOST_TAPS
    if large and keeps_columns(input.shape, weight.shape, stride, padding, dilation):
        return by_rows(b, input, weight, stride, padding, dilation)
    return _by_taps(b, input, weight, stride, padding, dilation)


def _by_taps(b: Build, input: Value, weight: Value, stride: Ints, padding: tuple[Ints, Ints], dilation: Ints) -> Value:
    """The taps side by side, times the weight, summed over the taps.

    Rows that cores share are gathered from device memory, and a column gets its zeros on the core that has its row.
    """
    rank, kernel = len(stride), weight.shape[2:]
    last = input.permute(0, *range(2, rank + 2), 1)
    for d in range(rank):
        last = bordered(b, last, d + 1, padding[0][d], padding[1][d], kernel[d], stride[d], dilation[d])
        last = side_by_side(b, taps(b, last, d + 1, kernel[d], stride[d], dilation[d]), rank + 1)
    factors = weight.squeeze(1).permute(*reversed(range(1, rank + 1)), 0)
    out = (last * factors).sum(tuple(range(rank + 1, 2 * rank + 1)))
    return out.permute(0, rank + 1, *range(1, rank + 1))


def keeps_columns(image: Ints, weight: Ints, stride: Ints, padding: tuple[Ints, Ints], dilation: Ints) -> bool:
    """Return whether columns can stay in the lanes: rows fill more than half of a stick, none is too long for a matrix.

    Args:
        image: [N, C, rows, columns].
        weight: [C, 1, taps, taps].
        stride: elements from one place to the next.
        padding: zeros before and behind both dimensions.
        dilation: elements from one tap to the next.
    """
    own = image[-1]
    places = _places(own, weight[-1], stride[-1], (padding[0][-1], padding[1][-1]), dilation[-1])
    return own > _LANES // 2 and max(own, places) <= _WIDEST


def by_rows(b: Build, input: Value, weight: Value, stride: Ints, padding: tuple[Ints, Ints], dilation: Ints) -> Value:
    """The same as `by_channel`, one product for each row of the window, with columns of images in the lanes."""
    own, (rows, columns) = input.shape[-1], weight.shape[2:]
    around = padding[0][1], padding[1][1]
    high = bordered(b, input, 2, padding[0][0], padding[1][0], rows, stride[0], dilation[0])
    matrices = banded(b, weight.squeeze(1), own, stride[1], around, dilation[1])
    lines = taps(b, high, 2, rows, stride[0], dilation[0])
    products = [b.call("matmul", x, taken(b, matrices, 1, row, 1).squeeze(1)) for row, x in enumerate(lines)]
    return taken(b, accumulated(b, products, "add.Tensor"), 3, 0, _places(own, columns, stride[1], around, dilation[1]))


def banded(b: Build, weight: Value, extent: int, stride: int, padding: Ints, dilation: int) -> Value:
    """Matrices [..., element, place]: the tap that an element is under with the window at a place, or 0.

    There are at least as many places as elements, those behind the last one without meaning: with fewer, layouts would
    bring the elements to the lanes, where products have the places.

    Args:
        b: where to build.
        weight: [..., taps].
        extent: elements along the dimension.
        stride: elements from one place to the next.
        padding: zeros before and behind the elements.
        dilation: elements from one tap to the next.
    """
    kernel = weight.shape[-1]
    places = max(extent, _places(extent, kernel, stride, padding, dilation))
    elements = b.iota(extent, "i64").unsqueeze(1)
    matrix = b.full((), 0.0, weight.element)
    for tap in range(kernel):
        under = b.iota(places, "i64", start=tap * dilation - padding[0], step=stride)
        matrix = elements.eq(under).where(taken(b, weight, -1, tap, 1).unsqueeze(-1), matrix)
    return matrix


def _places(extent: int, kernel: int, stride: int, padding: Ints, dilation: int) -> int:
    """Places of a window along a dimension."""
    return (sum(padding) + extent - reach(kernel, dilation)) // stride + 1
