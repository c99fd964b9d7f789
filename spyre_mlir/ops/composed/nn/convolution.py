"""Convolutions: the taps of a window gathered into one long summed dimension, and one product.

The window is gathered dimension by dimension, so that a k-by-k window takes 2k copies instead of k*k products and
k*k - 1 additions, each of which would round. Channels get zeros up to whole sticks, but where they are few the lanes
that they leave empty have rows of the image, see `ops/helpers/row_blocks.py`, or taps: three under a window of 49
places in one dimension sum over 147 elements, not over 49 times 64.
Channels that meet no other channel (depthwise) are convolved by themselves, see `ops/helpers/depthwise.py`.

Decision: docs/decisions/0134-groups-of-few-channels.md
"""

from __future__ import annotations

from math import prod

from spyre_mlir.hw.formats import DL16
from spyre_mlir.ops.annotations import Ints
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.depthwise import by_channel
from spyre_mlir.ops.helpers.patches import (
    below_each_other,
    by_patches,
    empty_lanes,
    has_rows_in_view,
    side_by_side_again,
)
from spyre_mlir.ops.helpers.row_blocks import by_row_blocks
from spyre_mlir.ops.helpers.slicing import joined, padded
from spyre_mlir.ops.helpers.sliding_windows import bordered, overlap_added, reach, spread, taps, with_batch
from spyre_mlir.ops.table import Sample, require
from spyre_mlir.ops.value import Value

# Elements of a stick of DL16, channels up to which groups are merged, and channels that get sticks of their own.
_LANES, _MERGED, _FEWEST = DL16.elements_per_stick(), 256, 8
# Elements of an image that gets zeros along a dimension when its taps are taken. Copies of a small one are too short
# for a division that is not the usual one, and zeros beside the columns would make that another than the product has.
_SMALL = 1 << 17

CONVOLVE_PADDED = "spyre::convolve_padded"


def _spatial(input: Value, weight: Value) -> int:
    rank = weight.rank - 2
    require("C1", input.rank in (rank + 1, rank + 2), "input and weight differ in spatial dimensions")
    return rank


def _convolved(
    b: Build,
    input: Value,
    weight: Value,
    bias: Value | None,
    stride: Ints,
    padding: tuple[Ints, Ints],
    dilation: Ints,
    groups: int,
) -> Value:
    """A convolution of a batch, whose images are one for windows that do not overlap."""
    kernel, batch = weight.shape[2:], input.shape[0]
    apart = groups == 1 and stride == kernel and all(gap == 1 for gap in dilation) and not any(map(any, padding))
    if not apart or batch == 1 or len(kernel) == 1 or prod(kernel) == 1:
        return _forward(b, input, weight, bias, stride, padding, dilation, groups)
    image = below_each_other(b, input, kernel[0])
    return side_by_side_again(_forward(b, image, weight, bias, stride, padding, dilation, groups), batch)


def _forward(
    b: Build,
    input: Value,
    weight: Value,
    bias: Value | None,
    stride: Ints,
    padding: tuple[Ints, Ints],
    dilation: Ints,
    groups: int,
) -> Value:
    """A convolution of a batch, with its padding before and behind every dimension."""
    rank, channels = len(stride), input.shape[1]
    require("C2", channels == weight.shape[1] * groups, "weight takes another number of channels")
    if groups == channels == weight.shape[0] and groups > 1:
        out = by_channel(b, input, weight, stride, padding, dilation)
        return out if bias is None else out + bias.view(channels, *(1,) * rank)
    weight, groups = _merged_groups(b, weight, groups)
    outputs, kernel = weight.shape[0], weight.shape[2:]
    apart = groups == 1 and stride == kernel and all(gap == 1 for gap in dilation)
    in_view = apart and has_rows_in_view(channels, kernel) and empty_lanes(channels * kernel[0]) > 0
    if groups == 1 and channels >= _FEWEST and prod(kernel) > 1 and not in_view:
        # Taps of whole sticks lie side by side as they come; of others all but the first would begin within a stick.
        input, weight = (padded(b, x, 1, 0, empty_lanes(channels)) for x in (input, weight))
        channels = input.shape[1]
    if groups == 1 and rank == 2 and channels < _FEWEST and not apart and dilation[0] == 1 and prod(kernel) > 1:
        out = by_row_blocks(b, input, weight, stride, padding, dilation)
        if out is not None:
            return out if bias is None else out + bias.view(outputs, 1, 1)
    last = input.permute(0, *range(2, rank + 2), 1)

    def edged(x: Value, d: int) -> Value:
        return bordered(b, x, d + 1, padding[0][d], padding[1][d], kernel[d], stride[d], dilation[d])

    late = prod(input.shape) <= _SMALL and not apart
    for d in range(0 if late else rank):
        last = edged(last, d)
    if apart and prod(kernel) > 1 and empty_lanes(kernel[-1] * channels) < kernel[-1] * channels:
        return by_patches(b, last, weight, bias)
    grouped = last.view(*last.shape[:-1], groups, channels // groups) if groups > 1 else last
    for d in range(rank):
        grouped = edged(grouped, d) if late else grouped
        grouped = joined(b, taps(b, grouped, d + 1, weight.shape[d + 2], stride[d], dilation[d]), -1)
    if groups > 1:
        return _grouped_product(b, grouped, weight, bias, groups)
    # Taps outermost in the order they were gathered: the first spatial dimension changes fastest.
    matrix = weight.permute(0, *_gathered(rank)).reshape(outputs, prod(weight.shape[1:]))
    return b.call("linear", grouped, matrix, bias).permute(0, rank + 1, *range(1, rank + 1))


def _merged_groups(b: Build, weight: Value, groups: int) -> tuple[Value, int]:
    """The weight of fewer groups with more channels, 0 where an output does not read a channel; and their number.

    Fewer channels than lanes leave the rest of the lanes empty, and a product per group takes longer than one product.
    """
    outputs, own = weight.shape[:2]
    together = [s for s in range(2, groups + 1) if groups % s == 0 and s * own <= _MERGED]
    fits = [s for s in together if s == groups or s * own % _LANES == 0]
    if own >= _LANES or not fits:
        return weight, groups
    merged, each = max(fits), outputs // groups
    # Outputs stay one dimension, which is in the lanes: output o of a group reads channels of part o // each.
    output = b.call("arange.start_step", start=0, end=merged * each, step=1).unsqueeze(1)
    first, behind = (
        b.call("arange.start_step", start=start, end=start + merged * each, step=each) for start in (0, each)
    )
    reads = b.call("logical_and", output.ge(first), output.lt(behind))
    parts = weight.view(groups // merged, merged * each, 1, prod(weight.shape[1:]))
    whole = reads.unsqueeze(2).where(parts, 0.0)
    return whole.view(outputs, merged * own, *weight.shape[2:]), groups // merged


def _gathered(rank: int) -> Ints:
    """Dimensions of a weight behind its outputs in the order of gathered columns: taps, then the channel."""
    return (*reversed(range(2, rank + 2)), 1)


def _grouped_product(b: Build, columns: Value, weight: Value, bias: Value | None, groups: int) -> Value:
    """One product per group, all in one: columns [N, places…, group, summed]."""
    batch, *places, _, summed = columns.shape
    rank, outputs = len(places), weight.shape[0] // groups
    left = columns.permute(rank + 1, *range(rank + 1), rank + 2).reshape(groups, batch * prod(places), summed)
    right = weight.view(groups, outputs, *weight.shape[1:])
    right = right.permute(0, *(d + 1 for d in _gathered(rank)), 1).reshape(groups, summed, outputs)
    out = b.call("bmm", left, right).view(groups, batch, *places, outputs)
    return _from_groups(out, bias)


def _from_groups(out: Value, bias: Value | None) -> Value:
    """[group, N, places…, output] as [N, channel, places…], plus bias."""
    groups, batch, *places, outputs = out.shape
    rank = len(places)
    if bias is not None:
        out = out + bias.view(groups, *(1,) * (rank + 1), outputs)
    return out.permute(1, 0, rank + 2, *range(2, rank + 2)).reshape(batch, groups * outputs, *places)


def _transposed(
    b: Build,
    input: Value,
    weight: Value,
    bias: Value | None,
    stride: Ints,
    padding: Ints,
    output_padding: Ints,
    dilation: Ints,
    groups: int,
) -> Value:
    """One product gives what every input element adds to its window; the windows are added up where they overlap."""
    rank, (batch, channels, *places) = len(stride), input.shape
    outputs, kernel = weight.shape[1], weight.shape[2:]
    require("C2", channels == weight.shape[0], "weight takes another number of channels")
    own = channels // groups
    left = input.view(batch, groups, own, prod(places)).permute(1, 0, 3, 2)
    left = left.reshape(groups, batch * prod(places), own)
    right = weight.view(groups, own, outputs, *kernel).permute(0, 1, *range(3, rank + 3), 2)
    right = right.reshape(groups, own, prod(kernel) * outputs)
    out = b.call("bmm", left, right)
    done: Ints = (groups, batch)
    # [group, N, done…, place, places behind, tap, taps behind and outputs]: each pair is folded into one dimension.
    # As few dimensions as possible at a time, for a nest has eight loops.
    for d in range(rank):
        behind = (prod(places[d + 1 :]), prod(kernel[d + 1 :]) * outputs)
        at = len(done)
        out = out.view(*done, places[d], behind[0], kernel[d], behind[1]).transpose(at + 1, at + 2)
        out = overlap_added(b, out, at, kernel[d], stride[d], dilation[d])
        out = padded(b, out, at, -padding[d], output_padding[d] - padding[d])
        require("C3", out.shape[at] > 0, f"nothing is left of dimension {d}")
        done = out.shape[: at + 1]
    return _from_groups(out.view(*done, outputs), bias)


@ATEN.composed(aten=["convolution"])
def convolution(
    b: Build,
    input: Value,
    weight: Value,
    bias: Value | None = None,
    *,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    transposed: bool,
    output_padding: Ints,
    groups: int,
) -> Value:
    """Sums of products over the input channels and a window that slides over the spatial dimensions.

    Constraints:
        C1: input has the spatial dimensions of weight, with or without a batch.
        C2: input has as many channels as weight takes, times the groups unless transposed.
        C3: the result has elements.
    """
    rank = _spatial(input, weight)
    steps, pads, gaps = spread(stride, rank), spread(padding, rank, (0,)), spread(dilation, rank)
    if transposed:
        more = spread(output_padding, rank, (0,))
        return with_batch(input, rank + 2, lambda x: _transposed(b, x, weight, bias, steps, pads, more, gaps, groups))
    return with_batch(input, rank + 2, lambda x: _convolved(b, x, weight, bias, steps, (pads, pads), gaps, groups))


@ATEN.composed(aten=["conv1d", "conv2d", "conv3d"])
def conv(
    b: Build,
    input: Value,
    weight: Value,
    bias: Value | None = None,
    *,
    stride: Ints = (1,),
    padding: Ints = (0,),
    dilation: Ints = (1,),
    groups: int = 1,
) -> Value:
    """A convolution over one, two or three spatial dimensions."""
    return b.call(
        "convolution",
        input,
        weight,
        bias,
        stride=stride,
        padding=padding,
        dilation=dilation,
        transposed=False,
        output_padding=(0,),
        groups=groups,
    )


@ATEN.composed(aten=["conv1d.padding", "conv2d.padding", "conv3d.padding"])
def conv_padding(
    b: Build,
    input: Value,
    weight: Value,
    bias: Value | None = None,
    *,
    stride: Ints = (1,),
    padding: str = "valid",
    dilation: Ints = (1,),
    groups: int = 1,
) -> Value:
    """A convolution whose padding is none ("valid"), or what keeps the extents ("same"): the odd one comes last."""
    rank = _spatial(input, weight)
    gaps = spread(dilation, rank)
    total = [reach(k, d) - 1 if padding == "same" else 0 for k, d in zip(weight.shape[2:], gaps, strict=True)]
    before = tuple(t // 2 for t in total)
    pads = (before, tuple(t - u for t, u in zip(total, before, strict=True)))
    steps = spread(stride, rank)
    return with_batch(input, rank + 2, lambda x: _convolved(b, x, weight, bias, steps, pads, gaps, groups))


@ATEN.composed(aten=[CONVOLVE_PADDED])
def convolve_padded(
    b: Build,
    input: Value,
    weight: Value,
    bias: Value | None = None,
    *,
    before: Ints,
    behind: Ints,
    stride: Ints = (1,),
    dilation: Ints = (1,),
    groups: int = 1,
) -> Value:
    """A convolution with other numbers of zeros before its dimensions than behind them."""
    rank = _spatial(input, weight)
    steps, gaps, pads = spread(stride, rank), spread(dilation, rank), (spread(before, rank), spread(behind, rank))
    return with_batch(input, rank + 2, lambda x: _convolved(b, x, weight, bias, steps, pads, gaps, groups))


@ATEN.composed(aten=["conv_transpose1d", "conv_transpose2d.input", "conv_transpose3d.input"])
def conv_transpose(
    b: Build,
    input: Value,
    weight: Value,
    bias: Value | None = None,
    *,
    stride: Ints = (1,),
    padding: Ints = (0,),
    output_padding: Ints = (0,),
    groups: int = 1,
    dilation: Ints = (1,),
) -> Value:
    """The transposed convolution: every input element adds its multiple of the window to the result."""
    return b.call(
        "convolution",
        input,
        weight,
        bias,
        stride=stride,
        padding=padding,
        dilation=dilation,
        transposed=True,
        output_padding=output_padding,
        groups=groups,
    )


_PLAIN = {"stride": (1,), "padding": (0,), "dilation": (1,), "transposed": False, "output_padding": (0,), "groups": 1}

ATEN.samples(
    convolution,
    Sample(((2, 3, 7, 6), (4, 3, 3, 2), (4,)), _PLAIN | {"stride": (2, 1), "padding": (1, 0)}),
    Sample(((1, 3, 9), (4, 3, 3)), _PLAIN | {"dilation": (2,)}),
    Sample(((2, 4, 6), (4, 3, 4), (6,)), _PLAIN | {"transposed": True, "stride": (3,), "groups": 2, "padding": (2,)}),
    Sample(((1, 3, 4, 3), (3, 2, 2, 3)), _PLAIN | {"transposed": True, "stride": (2, 1), "dilation": (3, 2)}),
    Sample(((3, 9), (4, 3, 3, 3)), _PLAIN, breaks="C1"),
    Sample(((1, 3, 9), (4, 2, 3)), _PLAIN, breaks="C2"),
    Sample(((1, 3, 4), (3, 2, 2)), _PLAIN | {"transposed": True, "padding": (3,)}, breaks="C3"),
)
ATEN.samples(
    conv,
    Sample(((2, 65, 9), (5, 65, 3), (5,)), {"padding": (1,)}),
    Sample(((4, 11), (6, 2, 3), (6,)), {"stride": (3,), "groups": 2}),
    Sample(((2, 3, 6, 7), (4, 3, 1, 1), (4,))),
    Sample(((2, 4, 6, 7), (4, 1, 3, 2), (4,)), {"groups": 4, "stride": (1, 2), "padding": (2, 1)}),
    Sample(((1, 4, 5, 5), (8, 1, 2, 2)), {"groups": 4, "dilation": (2, 3)}),
    Sample(((2, 2, 4, 5, 4), (3, 2, 2, 3, 2), (3,)), {"stride": (2,), "padding": (0, 1, 0)}),
    Sample(((2, 4, 4, 4), (2, 1, 2, 2, 3)), {"groups": 2, "padding": (0, 1, 1)}),
)
ATEN.samples(
    conv_padding,
    Sample(((2, 3, 8), (4, 3, 4), (4,)), {"padding": "same"}),
    Sample(((3, 6, 7), (4, 3, 3, 2)), {"padding": "same", "dilation": (2, 1)}),
    Sample(((1, 2, 4, 5, 4), (3, 2, 2, 3, 2)), {"padding": "valid", "stride": (1, 2, 1)}),
    Sample(((2, 4, 8), (6, 2, 3)), {"padding": "same", "groups": 2}),
)
ATEN.samples(
    convolve_padded,
    Sample(((2, 3, 6, 7), (4, 3, 3, 3), (4,)), {"before": (0, 0), "behind": (1, 2), "stride": (2, 2)}),
    Sample(((4, 9), (4, 1, 3)), {"before": (2,), "behind": (0,), "dilation": (2,), "groups": 4}),
)
ATEN.samples(
    conv_transpose,
    Sample(((2, 3, 5), (3, 4, 3), (4,)), {"stride": (2,), "padding": (1,), "output_padding": (1,)}),
    Sample(((3, 4, 3), (3, 2, 2, 2), (2,)), {"stride": (2, 2)}),
    Sample(((1, 4, 3, 4), (4, 1, 3, 2)), {"groups": 4, "padding": (0, 1)}),
    Sample(((1, 2, 2, 3, 2), (2, 3, 2, 1, 3)), {"stride": (1, 2, 2), "dilation": (2, 1, 1)}),
)
