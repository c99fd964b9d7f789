"""Windows that do not overlap, such as patches of an image.

Decision: docs/decisions/0059-windows-dimension-by-dimension.md
Decision: docs/decisions/0227-images-of-a-batch-lie-below-each-other.md
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from spyre_mlir.hw.formats import DL16
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.slicing import joined, padded, part
from spyre_mlir.ops.helpers.sliding_windows import taps
from spyre_mlir.ops.value import Value

_LANES = DL16.elements_per_stick()


def below_each_other(b: Build, images: Value, height: int) -> Value:
    """Return images of a batch one below the other, as one: no window of so many rows is in two of them."""
    batch, channels, rows, *others = images.shape
    whole = rows // height * height
    kept = images if whole == rows else part(b, images, 2, 0, whole)
    return kept.transpose(0, 1).reshape(1, channels, batch * whole, *others)


def side_by_side_again(image: Value, batch: int) -> Value:
    """Return a batch of images that were one below the other."""
    _, channels, rows, *others = image.shape
    return image.view(channels, batch, rows // batch, *others).transpose(0, 1)


def empty_lanes(elements: int) -> int:
    """Return the lanes that elements leave empty in their last stick."""
    return -elements % _LANES


def by_patches(b: Build, last: Value, weight: Value, bias: Value | None) -> Value:
    """Convolve windows that do not overlap: taps of one dimension fill whole sticks, those of others are a view."""
    rank, (outputs, channels, *kernel) = weight.rank - 2, weight.shape
    rows = has_rows_in_view(channels, kernel)
    turned = (rank, *range(2, rank), 1) if rows else tuple(range(1, rank + 1))
    weight, last = weight.permute(0, 1, *(d + 1 for d in turned)), last.permute(0, *turned, rank + 1)
    others, width = weight.shape[2:-1], weight.shape[-1]
    more = empty_lanes(width * channels)
    line = _taps_by_view(b, last, width, more) if rows else _taps_by_slices(b, last, width, more)
    batch, *extents, place, lanes = line.shape
    split = [part for extent, size in zip(extents, others, strict=True) for part in (extent // size, size)]
    # [N, place, tap, …, place, taps and channels]: places before taps, in the order of the input's dimensions.
    places, own = (*range(1, 2 * rank - 2, 2), 2 * rank - 1), range(2, 2 * rank - 1, 2)
    windows = line.view(batch, *split, place, lanes).permute(0, *(places[d - 1] for d in turned), *own, 2 * rank)
    windows = windows.reshape(batch, *windows.shape[1 : rank + 1], prod(others) * lanes)
    inner = (1, rank + 1) if rows else (rank + 1, 1)
    matrix = weight.permute(0, *range(2, rank + 1), *inner).reshape(outputs, prod(others), width * channels)
    matrix = padded(b, matrix, -1, 0, more).view(outputs, prod(others) * lanes)
    return b.call("linear", windows, matrix, bias).permute(0, rank + 1, *range(1, rank + 1))


def has_rows_in_view(channels: int, kernel: Sequence[int]) -> bool:
    """Return whether one copy gathers the rows: few channels, many rows, and the last dimension stays in the lanes."""
    return len(kernel) > 1 and channels * kernel[0] <= _LANES and kernel[0] >= kernel[-1]


def _taps_by_slices(b: Build, last: Value, width: int, more: int) -> Value:
    """[N, …, place, taps and channels]: the taps of the last dimension side by side, copied one by one."""
    columns = taps(b, last, last.rank - 2, width, width)
    zeros = [b.full((*columns[0].shape[:-1], more), 0.0, last.element)] if more else []
    return joined(b, [*columns, *zeros], -1)


def _taps_by_view(b: Build, last: Value, width: int, more: int) -> Value:
    """[N, …, place, channels and taps]: the taps of the last dimension side by side, in one copy."""
    *front, extent, channels = last.shape
    at = last.rank - 2
    places = last.view(*front, extent // width, width, channels).permute(*range(at + 1), at + 2, at + 1)
    return padded(b, places.reshape(*front, extent // width, channels * width), -1, 0, more)


__all__ = ["below_each_other", "by_patches", "empty_lanes", "has_rows_in_view", "side_by_side_again"]
