"""Windows laid out as columns, and added up again."""

from __future__ import annotations

from math import prod

from spyre_mlir.ops.annotations import Ints
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.slicing import padded, side_by_side
from spyre_mlir.ops.helpers.sliding_windows import bordered, overlap_added, reach, spread, taps, with_batch
from spyre_mlir.ops.table import Sample, require
from spyre_mlir.ops.value import Value


@ATEN.composed(aten=["im2col"], ulps=0)
def im2col(b: Build, self: Value, *, kernel_size: Ints, dilation: Ints, padding: Ints, stride: Ints) -> Value:
    """Elements under a window over the last two dimensions, a column per place of the window."""
    (kernel, gaps, steps), pads = (spread(v, 2) for v in (kernel_size, dilation, stride)), spread(padding, 2, (0,))

    def columns(x: Value) -> Value:
        batch, channels = x.shape[:2]
        for d in (1, 0):
            at = x.rank - 2 + d
            x = bordered(b, x, at, pads[d], pads[d], kernel[d], steps[d], gaps[d])
            x = side_by_side(b, taps(b, x, at, kernel[d], steps[d], gaps[d]), 2)
        # [N, C, tap 1, tap 2, place 1, place 2]
        return x.reshape(batch, channels * prod(kernel), prod(x.shape[4:]))

    return with_batch(self, 4, columns)


@ATEN.composed(aten=["col2im"])
def col2im(
    b: Build, self: Value, *, output_size: Ints, kernel_size: Ints, dilation: Ints, padding: Ints, stride: Ints
) -> Value:
    """The reverse of `im2col`: every column is added to the result where its window was.

    Constraints:
        C1: there are as many columns as the window has places in the result.
    """
    (kernel, gaps, steps), pads = (spread(v, 2) for v in (kernel_size, dilation, stride)), spread(padding, 2, (0,))
    whole = [e + 2 * p for e, p in zip(spread(output_size, 2), pads, strict=True)]
    places = [(e - reach(k, g)) // s + 1 for e, k, g, s in zip(whole, kernel, gaps, steps, strict=True)]

    def image(x: Value) -> Value:
        batch, rows, columns = x.shape
        require("C1", columns == prod(places), f"{columns} columns for {prod(places)} places")
        x = x.view(batch, rows // prod(kernel), *kernel, *places).permute(0, 1, 4, 2, 5, 3)
        for d in range(2):
            x = overlap_added(b, x, d + 2, kernel[d], steps[d], gaps[d])
            x = padded(b, x, d + 2, -pads[d], whole[d] - pads[d] - x.shape[d + 2])
        return x

    return with_batch(self, 3, image)


_FOLD = {"kernel_size": (3, 2), "dilation": (1, 2), "padding": (1, 0), "stride": (2, 1)}
_PLAIN = {"kernel_size": (2, 2), "dilation": (1, 1), "padding": (0, 0), "stride": (1, 1)}
ATEN.samples(im2col, Sample(((2, 3, 7, 6),), _FOLD), Sample(((3, 4, 5),), _PLAIN))
ATEN.samples(
    col2im,
    Sample(((2, 18, 16),), _FOLD | {"output_size": (7, 6)}),
    Sample(((8, 6),), _PLAIN | {"output_size": (3, 4)}),
    Sample(((8, 5),), _PLAIN | {"output_size": (3, 4)}, breaks="C1"),
)
