"""Convolutions of few channels: blocks of rows fill the lanes that the channels leave empty.

The elements of an image lie in the lanes by columns, and a product sums over lanes. So every element that a window has
goes through device memory to another lane; with a window for each place, as often as windows overlap. Here the rows
under the windows of several rows of places share a stick: 21 rows of three channels, over which 7-by-7 windows have 8
places. The product has an output for each of these places, and its matrix the window at each of them, zeros around it.

Decision: docs/decisions/0173-rows-share-a-stick-where-channels-are-few.md
"""

from __future__ import annotations

from spyre_mlir.hw.formats import DL16
from spyre_mlir.hw.sticks import round_up
from spyre_mlir.ops.annotations import Ints
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.slicing import joined, padded, taken
from spyre_mlir.ops.helpers.sliding_windows import bordered, reach, taps
from spyre_mlir.ops.value import Value

_LANES = DL16.elements_per_stick()


def by_row_blocks(
    b: Build, input: Value, weight: Value, stride: Ints, padding: tuple[Ints, Ints], dilation: Ints
) -> Value | None:
    """A convolution of images whose windows have no gaps between their rows.

    Args:
        b: where to build.
        input: [N, C, rows, columns].
        weight: [outputs, C, rows, columns].
        stride: elements from one place to the next.
        padding: zeros before and behind both dimensions.
        dilation: elements from one tap to the next; 1 for rows.

    Returns:
        [N, outputs, places, places]; None if no stick has the rows of a window, or the matrix would be larger than the
        windows of all places.
    """
    outputs, _, high, wide = weight.shape
    places = _places(input, weight, stride, padding, dilation)
    at_once = _rows_at_once(weight.shape, stride[0], places)
    if not at_once:
        return None
    count, step, rows = places[0] // at_once, at_once * stride[0], (at_once - 1) * stride[0] + high
    reached = -(-rows // step)
    # A block has its own rows and the first ones of those behind it.
    behind = (count + reached - 1) * step - padding[0][0] - input.shape[2]
    image = padded(b, input.permute(0, 2, 3, 1), 1, padding[0][0], behind)
    blocks = image.view(image.shape[0], count + reached - 1, step, *image.shape[2:])
    parts = [taken(b, taken(b, blocks, 1, q, count), 2, 0, min(step, rows - q * step)) for q in range(reached)]
    lines = joined(b, parts, 2).transpose(2, 3)
    lines = _whole_sticks(b, lines.reshape(*lines.shape[:3], rows * weight.shape[1]))
    # Zeros beside the columns once these are no lanes: the copy that adds them brings a block to its core.
    lines = bordered(b, lines, 2, padding[0][1], padding[1][1], wide, stride[1], dilation[1])
    windows = joined(b, taps(b, lines, 2, wide, stride[1], dilation[1]), -1)
    matrix = _banded(b, weight, at_once, rows, stride[0])
    out = b.call("linear", windows, matrix, None)
    out = out.view(*out.shape[:3], at_once, matrix.shape[0] // at_once)
    out = taken(b, out, 4, 0, outputs)
    return out.permute(0, 4, 1, 3, 2).reshape(out.shape[0], outputs, *places)


def _places(input: Value, weight: Value, stride: Ints, padding: tuple[Ints, Ints], dilation: Ints) -> tuple[int, int]:
    """Places of a window along the rows and columns of an image."""
    rows, columns = (
        (input.shape[d + 2] + padding[0][d] + padding[1][d] - reach(weight.shape[d + 2], dilation[d])) // stride[d] + 1
        for d in range(2)
    )
    return rows, columns


def _rows_at_once(window: Ints, stride: int, places: tuple[int, int]) -> int:
    """Rows of places whose windows have all their rows in one stick; 0 if there is no such number."""
    outputs, channels, high, wide = window
    windows = places[0] * places[1] * round_up(channels * high * wide, _LANES)
    most = 0
    for count in range(1, places[0] + 1):
        fits = channels * (stride * (count - 1) + high) <= _LANES
        small = _outputs(outputs, count) * count * wide * _LANES <= windows
        if fits and small and places[0] % count == 0:
            most = count
    return most


def _banded(b: Build, weight: Value, at_once: int, rows: int, stride: int) -> Value:
    """[place and output, column, row and channel]: the window at each of the places that a block has.

    Lines of the weight with as many zeros behind them that the next line begins a stride later in a row shorter by a
    stride: all of it moves elements, so the host does it when weights are laid out.
    """
    outputs, channels, high, wide = weight.shape
    full, line = _outputs(outputs, at_once), rows + stride
    lines = padded(b, padded(b, weight.permute(0, 3, 1, 2), -1, 0, line - high), 0, 0, full - outputs)
    repeated = lines.unsqueeze(3).expand(full, wide, channels, at_once, line)
    flat = taken(b, repeated.reshape(full, wide, channels, at_once * line), 3, 0, at_once * rows)
    band = flat.view(full, wide, channels, at_once, rows).permute(3, 0, 1, 4, 2)
    band = _whole_sticks(b, band.reshape(at_once * full, wide, rows * channels))
    return band.view(at_once * full, wide * band.shape[2])


def _outputs(outputs: int, at_once: int) -> int:
    """Outputs of a place: whole sticks if another place follows in the lanes."""
    return outputs if at_once == 1 else round_up(outputs, _LANES)


def _whole_sticks(b: Build, x: Value) -> Value:
    """A tensor with zeros behind its last dimension, up to whole sticks."""
    return padded(b, x, -1, 0, round_up(x.shape[-1], _LANES) - x.shape[-1])
