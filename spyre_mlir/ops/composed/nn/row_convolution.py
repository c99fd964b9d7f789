"""Convolutions of images whose columns are in the lanes, as torch-spyre places them, and whose results are like that.

A product has the columns of its second operand in the lanes of its result. So the weight is the first operand, copied
for every row of the image, which stays in the scratchpads, and the image, taps gathered under its channels, is the
second one. A tap of another row is a slice. A tap of another column is a product with ones beside the diagonal, for
lanes do not move; it also has the zeros around the image.

Decision: docs/decisions/0174-wide-images-are-convolved-by-rows.md
"""

from __future__ import annotations

from spyre_mlir.hw.formats import DL16
from spyre_mlir.hw.sticks import round_up
from spyre_mlir.ops.annotations import Ints
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.depthwise import banded, by_rows
from spyre_mlir.ops.helpers.slicing import joined, padded, taken
from spyre_mlir.ops.helpers.sliding_windows import taps
from spyre_mlir.ops.table import Sample, require
from spyre_mlir.ops.value import Value

_LANES = DL16.elements_per_stick()
CONVOLVE_ROWS = "spyre::convolve_rows"
# Operators whose convolutions may be written so.
CONVOLUTIONS = ("conv2d", "convolution")


@ATEN.composed(aten=[CONVOLVE_ROWS])
def convolve_rows(
    b: Build,
    input: Value,
    weight: Value,
    bias: Value | None = None,
    *,
    padding: Ints,
    stride: Ints = (1, 1),
    dilation: Ints = (1, 1),
    groups: int = 1,
) -> Value:
    """A convolution over two dimensions, written so that columns of images stay in the lanes.

    Constraints:
        C1: input is [N, C, H, W], weight [O, C / groups, taps, taps].
        C2: stride and dilation are 1, or windows of one group lie side by side, without padding, or channels meet no
            other channel.
    """
    require("C1", input.rank == 4 and input.shape[1] == weight.shape[1] * groups, "weight takes other channels")
    apart = stride == weight.shape[2:] and groups == 1 and set(padding) == {0} and dilation == (1, 1)
    alone = groups == input.shape[1] == weight.shape[0] and groups > 1
    plain = stride == dilation == (1, 1)
    require("C2", plain or apart or alone, f"windows that overlap, {stride} from one to the next, or have gaps")
    if alone:
        out = by_rows(b, input, weight, stride, (padding, padding), dilation)
    elif stride != (1, 1):
        out = _of_patches(b, input, weight)
    else:
        out = (_of_groups if groups > 1 else _of_all)(b, input, weight, padding, groups)
    return out if bias is None else out + bias.view(weight.shape[0], 1, 1)


def _of_all(b: Build, input: Value, weight: Value, padding: Ints, _: int) -> Value:
    """Every output reads all channels, so cores have rows of the image, and fetch those around them."""
    outputs, own, rows, columns = weight.shape
    image = padded(b, input.permute(0, 2, 1, 3), 1, padding[0], padding[0])
    gathered = joined(b, taps(b, image, 1, rows, 1), 2)
    under = joined(b, [_shifted(b, gathered, tap, columns, padding[1]) for tap in range(columns)], 2)
    # Taps of columns outermost, as they were gathered.
    matrix = weight.permute(0, 3, 2, 1).reshape(outputs, columns * rows * own)
    copies = matrix.expand(*under.shape[:2], *matrix.shape).clone()
    return b.call("matmul", copies, under).permute(0, 2, 1, 3)


def _of_patches(b: Build, input: Value, weight: Value) -> Value:
    """Windows side by side: a product with a matrix of zeros and ones brings each tap of a row to its place."""
    outputs, own, rows, columns = weight.shape
    batch, _, height, width = input.shape
    high, wide, summed = height // rows, width // columns, own * rows * columns
    # Taps begin with a stick of their own, so that they need not be taken apart within one.
    full = round_up(wide, _LANES)
    lines = taken(b, input, 2, 0, high * rows).view(batch, own, high, rows, width).permute(0, 2, 1, 3, 4)
    matrix = b.call(
        "spyre::resample",
        size=(columns * full, width),
        mode="taps",
        scale=float(columns),
        dtype=input.element,
    )
    under = b.call("linear", lines.reshape(batch * high * own * rows, width), matrix)
    under = taken(b, under.view(batch, high, own * rows, columns, full), 4, 0, wide)
    under = padded(b, under.reshape(batch, high, summed, wide), 2, 0, -summed % _LANES)
    flat = padded(b, weight.view(outputs, summed), 1, 0, -summed % _LANES)
    copies = flat.expand(batch, high, *flat.shape)
    return b.call("matmul", copies, under).permute(0, 2, 1, 3)


def _of_groups(b: Build, input: Value, weight: Value, padding: Ints, groups: int) -> Value:
    """Outputs read the channels of their group, so cores have groups, and all rows of these."""
    (batch, _, height, width), (outputs, own, rows, columns) = input.shape, weight.shape
    places = height + 2 * padding[0] - rows + 1
    lines = [_line(b, input, row - padding[0], places).view(batch, groups, own, places, width) for row in range(rows)]
    # [N, groups, rows * channels of a group, places, columns], and the rows of all of them at once.
    gathered = joined(b, lines, 2)
    flat = gathered.view(-1, width)
    shifted = [_shifted(b, flat, tap, columns, padding[1]) for tap in range(columns)]
    under = joined(b, [x.view(*gathered.shape[:-1], x.shape[-1]) for x in shifted], 2)
    matrix = weight.view(groups, outputs // groups, own, rows, columns).permute(0, 1, 4, 3, 2)
    matrix = matrix.reshape(groups, 1, outputs // groups, columns * rows * own)
    copies = matrix.expand(batch, groups, places, *matrix.shape[2:]).clone()
    out = b.call("matmul", copies, under.transpose(2, 3)).transpose(2, 3)
    return out.reshape(batch, outputs, places, out.shape[-1])


def _line(b: Build, image: Value, first: int, count: int) -> Value:
    """So many rows of an image [N, C, H, W], 0 where it has none."""
    start, end = max(first, 0), min(first + count, image.shape[2])
    return padded(b, taken(b, image, 2, start, end - start), 2, start - first, first + count - end)


def _shifted(b: Build, image: Value, tap: int, columns: int, around: int) -> Value:
    """The columns of an image that a tap meets at each place of the window, 0 beside the image."""
    extent = image.shape[-1]
    places = extent + 2 * around - columns + 1
    if tap == around and places == extent:
        return image
    matrix = banded(b, b.full((1,), 1.0, image.element), extent, 1, (around - tap, places - extent + tap - around), 1)
    return taken(b, b.call("matmul", image, matrix), image.rank - 1, 0, places)


ATEN.samples(
    convolve_rows,
    Sample(((2, 3, 5, 7), (4, 3, 3, 3), (4,)), {"padding": (1, 1)}),
    Sample(((1, 4, 5, 6), (6, 2, 1, 2)), {"padding": (0, 1), "groups": 2}),
    Sample(((1, 3, 4, 5), (2, 3, 2, 3)), {"padding": (1, 0)}),
    Sample(((2, 3, 7, 9), (4, 3, 3, 2), (4,)), {"padding": (0, 0), "stride": (3, 2)}),
    Sample(((2, 3, 7, 9), (3, 1, 3, 2), (3,)), {"padding": (2, 1), "stride": (2, 1), "dilation": (2, 3), "groups": 3}),
    Sample(((1, 3, 4, 5), (2, 2, 1, 1)), {"padding": (0, 0)}, breaks="C1"),
    Sample(((1, 3, 4, 5), (2, 3, 2, 2)), {"padding": (0, 0), "stride": (1, 2)}, breaks="C2"),
)
