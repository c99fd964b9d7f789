"""Convolutions against sums over every place and tap, on whole numbers."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import pytest
import torch

from spyre_mlir.dialects.spyre.kernel import ComputeOp, RestickifyOp
from spyre_mlir.dialects.spyre.loop import NestOp
from spyre_mlir.errors import ConstraintError
from spyre_mlir.frontend import import_program
from spyre_mlir.pipeline import lower
from spyre_mlir.universe import make_context
from tests.unit.ops.cases import Array, agree, budgets, calls, check_samples, result

MODULE = "spyre_mlir.ops.composed.nn.convolution"

FREE = {"place-inputs": {"inputs": "free"}}
RNG = np.random.default_rng(2)
Ints = Sequence[int]


def whole(*shape: int) -> Array:
    return RNG.integers(-4, 5, shape).astype(np.float64)


def window(at: Ints, kernel: Ints, stride: Ints, gaps: Ints) -> tuple[slice, ...]:
    """The elements under a window at a place."""
    return tuple(slice(a * s, a * s + d * (k - 1) + 1, d) for a, k, s, d in zip(at, kernel, stride, gaps, strict=True))


def convolved(x: Array, weight: Array, stride: Ints, pads: Sequence[tuple[int, int]], gaps: Ints, groups: int) -> Array:
    """[N, C, places…]: the sum over channels of a group and taps, place by place."""
    padded = np.pad(x, [(0, 0), (0, 0), *pads])
    kernel = weight.shape[2:]
    sizes = [(e - d * (k - 1) - 1) // s + 1 for e, k, s, d in zip(padded.shape[2:], kernel, stride, gaps, strict=True)]
    out = np.zeros((len(x), len(weight), *sizes))
    own = weight.shape[1]
    for channel, at in ((c, a) for c in range(len(weight)) for a in np.ndindex(*sizes)):
        first = channel // (len(weight) // groups) * own
        taps = padded[(slice(None), slice(first, first + own), *window(at, kernel, stride, gaps))]
        out[(slice(None), channel, *at)] = (taps * weight[channel]).reshape(len(x), -1).sum(1)
    return out


def transposed(x: Array, weight: Array, stride: Ints, pads: Ints, more: Ints, gaps: Ints, groups: int) -> Array:
    """Every element adds its multiple of the window; then the padding is cut off."""
    kernel, own, outputs = weight.shape[2:], x.shape[1] // groups, weight.shape[1]
    sizes = [(e - 1) * s + d * (k - 1) + 1 for e, s, k, d in zip(x.shape[2:], stride, kernel, gaps, strict=True)]
    out = np.zeros((len(x), groups * outputs, *(e + m for e, m in zip(sizes, more, strict=True))))
    for channel, at in ((c, a) for c in range(x.shape[1]) for a in np.ndindex(*x.shape[2:])):
        first = channel // own * outputs
        part = x[(slice(None), channel, *at)].reshape(-1, *(1,) * (len(kernel) + 1)) * weight[channel]
        out[(slice(None), slice(first, first + outputs), *window(at, kernel, stride, gaps))] += part
    kept = tuple(slice(p, e + m - p) for p, e, m in zip(pads, sizes, more, strict=True))
    return out[(slice(None), slice(None), *kept)]


# input, weight, stride, padding, dilation, groups
FORWARD: list[tuple[Any, ...]] = [
    ((2, 3, 7), (4, 3, 3), (1,), (0,), (1,), 1),
    ((2, 3, 7), (4, 3, 2), (2,), (1,), (3,), 1),
    ((1, 4, 8), (6, 2, 3), (3,), (2,), (1,), 2),
    ((2, 3, 5, 6), (2, 3, 3, 2), (2, 1), (1, 0), (1, 2), 1),
    ((2, 4, 4, 5), (6, 2, 2, 3), (1, 2), (0, 1), (2, 1), 2),
    ((2, 3, 4, 5), (3, 1, 2, 3), (1, 2), (1, 2), (2, 1), 3),  # depthwise
    ((1, 2, 4, 5), (4, 1, 2, 2), (1, 1), (0, 0), (1, 1), 2),  # two outputs per channel
    ((1, 1, 4, 5), (1, 1, 2, 2), (1, 1), (0, 0), (1, 1), 1),
    ((1, 2, 3, 4, 3), (2, 2, 2, 1, 2), (1, 2, 1), (0, 1, 0), (1, 1, 2), 1),
    ((2, 2, 3, 3, 4), (2, 1, 2, 3, 2), (1, 1, 2), (0, 1, 1), (2, 1, 1), 2),
    ((1, 40, 5), (3, 40, 2), (1,), (1,), (2,), 1),  # zeros behind the channels
    ((2, 70, 3, 4), (2, 70, 2, 3), (1, 2), (0, 1), (1, 1), 1),
]
# The same for groups that are merged: all, in two parts, with two outputs per channel.
MERGED: list[tuple[Any, ...]] = [
    ((2, 64, 4, 3), (64, 4, 2, 3), (1, 2), (1, 1), (1, 1), 16),
    ((1, 512, 3), (32, 32, 2), (1,), (1,), (2,), 16),
    ((1, 64, 3, 3), (128, 1, 2, 2), (1, 1), (0, 0), (1, 1), 64),
]
# The same for channels that get zeros up to whole sticks.
FILLED: list[tuple[Any, ...]] = [
    ((2, 9, 5), (2, 9, 3), (1,), (1,), (1,), 1),
    ((1, 48, 4, 5), (12, 8, 2, 3), (2, 1), (1, 0), (1, 2), 6),
    ((1, 16, 8, 9), (2, 16, 4, 4), (4, 4), (0, 0), (1, 1), 1),
]
# The same for windows that do not overlap.
APART: list[tuple[Any, ...]] = [
    ((2, 20, 5, 7), (3, 20, 2, 2), (2, 2), (1, 0), (1, 1), 1),  # what is left at the ends is cut off
    ((3, 4, 7, 9), (5, 4, 2, 3), (2, 3), (0, 0), (1, 1), 1),  # images of a batch
    ((2, 1, 2, 8, 6), (3, 1, 2, 3, 2), (2, 3, 2), (0, 0, 0), (1, 1, 1), 1),
    ((1, 12, 6, 12), (2, 12, 2, 4), (2, 4), (0, 0), (1, 1), 1),
    ((2, 16, 9), (3, 16, 4), (4,), (0,), (1,), 1),
    ((1, 3, 15, 30), (2, 3, 14, 14), (14, 14), (0, 0), (1, 1), 1),  # zeros behind the taps of a window
    ((1, 2, 4, 17, 6), (2, 2, 3, 16, 2), (3, 16, 2), (1, 0, 0), (1, 1, 1), 1),
    ((1, 2, 17, 4, 6), (2, 2, 16, 2, 3), (16, 2, 3), (0, 0, 0), (1, 1, 1), 1),
    ((1, 40, 2, 6, 2), (2, 40, 1, 3, 1), (1, 3, 1), (0, 0, 0), (1, 1, 1), 1),
]


@pytest.mark.parametrize(
    ("shape", "kernel", "stride", "padding", "dilation", "groups"), [*FORWARD, *MERGED, *FILLED, *APART]
)
@pytest.mark.parametrize("with_bias", [False, True])
def test_convolution(
    shape: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int, with_bias: bool
) -> None:
    x, weight, bias = whole(*shape), whole(*kernel), whole(kernel[0])
    wanted = convolved(x, weight, stride, [(p, p) for p in padding], dilation, groups)
    wanted = wanted + bias.reshape(-1, *(1,) * len(stride)) if with_bias else wanted
    given = (x, weight, bias) if with_bias else (x, weight)
    facts = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    agree(result(f"conv{len(stride)}d", *given, **facts), wanted)
    got = result("convolution", *given, **facts, transposed=False, output_padding=(0,))
    agree(got, wanted)


@pytest.mark.parametrize(("shape", "kernel", "stride", "padding", "dilation", "groups"), [*FORWARD, *MERGED, *FILLED])
def test_large_images_have_all_zeros_before_their_taps(
    shape: Ints,
    kernel: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(f"{MODULE}._SMALL", 0)
    x, weight = whole(*shape), whole(*kernel)
    facts = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    wanted = convolved(x, weight, stride, [(p, p) for p in padding], dilation, groups)
    agree(result(f"conv{len(stride)}d", x, weight, **facts), wanted)


@pytest.mark.parametrize(("rows", "before"), [(32, False), (33, True)])
def test_zeros_of_small_images_are_added_dimension_by_dimension(rows: int, before: bool) -> None:
    """Images of 2^17 elements, and of more: those have all zeros before the first tap is taken."""
    layer = torch.nn.Conv2d(128, 64, 3, padding=1, bias=False).half()
    program = import_program(layer, (torch.zeros(1, 128, rows, 32).half(),))
    nests = [op for op in lower(program.module, make_context()).modules["spyre.loop"].walk() if isinstance(op, NestOp)]
    made = [tuple(value.type.get_shape()) for op in nests for value in op.results]  # pyright: ignore
    assert ((1, rows + 2, 34, 128) in made) is before


def test_a_convolution_slides_by_one_and_is_not_padded_unless_told() -> None:
    x, weight = whole(1, 2, 5), whole(3, 2, 2)
    agree(result("conv1d", x, weight), convolved(x, weight, (1,), [(0, 0)], (1,), 1))
    agree(result("conv1d.padding", x, weight), convolved(x, weight, (1,), [(0, 0)], (1,), 1))
    agree(result("conv_transpose1d", x, whole(2, 3, 1) * 0 + 1), x.sum(1, keepdims=True).repeat(3, 1))


def test_one_number_stands_for_all_dimensions_and_the_batch_may_be_missing() -> None:
    x, weight = whole(3, 5, 6), whole(2, 3, 2, 2)
    wanted = convolved(x[None], weight, (2, 2), [(1, 1), (1, 1)], (2, 2), 1)[0]
    agree(result("conv2d", x, weight, stride=(2,), padding=(1,), dilation=(2,)), wanted)
    same = result("conv2d.padding", x, weight, padding="same")
    agree(same, convolved(x[None], weight, (1, 1), [(0, 1), (0, 1)], (1, 1), 1)[0])


@pytest.mark.parametrize(
    ("shape", "kernel", "dilation", "pads", "groups"),
    [
        ((2, 3, 7), (4, 3, 4), (1,), [(1, 2)], 1),
        ((2, 3, 7), (4, 3, 4), (3,), [(4, 5)], 1),
        ((1, 4, 5, 6), (2, 2, 3, 2), (2, 1), [(2, 2), (0, 1)], 2),
        ((1, 2, 3, 4, 5), (2, 2, 2, 1, 3), (1, 1, 1), [(0, 1), (0, 0), (1, 1)], 1),
    ],
)
def test_same_padding_keeps_the_extents_and_the_odd_one_comes_last(
    shape: Ints, kernel: Ints, dilation: Ints, pads: list[tuple[int, int]], groups: int
) -> None:
    x, weight, bias = whole(*shape), whole(*kernel), whole(kernel[0])
    wanted = convolved(x, weight, (1,) * len(pads), pads, dilation, groups) + bias.reshape(-1, *(1,) * len(pads))
    assert wanted.shape[2:] == x.shape[2:]
    facts = {"padding": "same", "dilation": dilation, "groups": groups}
    agree(result(f"conv{len(pads)}d.padding", x, weight, bias, **facts), wanted)


def test_valid_padding_is_none() -> None:
    x, weight = whole(1, 2, 9), whole(3, 2, 3)
    wanted = convolved(x, weight, (2,), [(0, 0)], (2,), 1)
    agree(result("conv1d.padding", x, weight, padding="valid", stride=(2,), dilation=(2,)), wanted)


# input, weight, stride, padding, output padding, dilation, groups
BACKWARD: list[tuple[Any, ...]] = [
    ((2, 3, 5), (3, 4, 3), (1,), (0,), (0,), (1,), 1),
    ((2, 3, 5), (3, 4, 3), (2,), (1,), (1,), (1,), 1),
    ((1, 4, 4), (4, 3, 2), (3,), (0,), (2,), (2,), 2),
    ((2, 3, 3, 4), (3, 2, 2, 3), (2, 1), (1, 0), (1, 0), (1, 2), 1),
    ((2, 4, 3, 2), (4, 1, 2, 3), (1, 2), (0, 1), (0, 1), (2, 1), 4),
    ((1, 2, 2, 3, 2), (2, 3, 2, 1, 3), (1, 2, 2), (0, 0, 1), (0, 1, 0), (2, 1, 1), 1),
]


@pytest.mark.parametrize(("shape", "kernel", "stride", "padding", "more", "dilation", "groups"), BACKWARD)
@pytest.mark.parametrize("with_bias", [False, True])
def test_transposed_convolution(
    shape: Ints, kernel: Ints, stride: Ints, padding: Ints, more: Ints, dilation: Ints, groups: int, with_bias: bool
) -> None:
    x, weight, bias = whole(*shape), whole(*kernel), whole(kernel[1] * groups)
    wanted = transposed(x, weight, stride, padding, more, dilation, groups)
    wanted = wanted + bias.reshape(-1, *(1,) * len(stride)) if with_bias else wanted
    given = (x, weight, bias) if with_bias else (x, weight)
    facts = {"stride": stride, "padding": padding, "output_padding": more, "dilation": dilation, "groups": groups}
    rank = len(stride)
    agree(result(f"conv_transpose{rank}d" + ".input" * (rank > 1), *given, **facts), wanted)
    agree(result("convolution", *given, **facts, transposed=True), wanted)
    if shape[0] == 1:
        agree(result("convolution", x[0], *given[1:], **facts, transposed=True), wanted[0])


def test_channels_that_meet_no_other_take_no_matrix_product() -> None:
    def products(channels: int, outputs: int, own: int, groups: int) -> set[str]:
        called = calls("conv1d", whole(1, channels, 5), whole(outputs, own, 2), groups=groups)
        return {"bmm", "linear"} & set(called)

    assert products(3, 3, 1, 3) == set()
    assert products(1, 1, 1, 1) == {"linear"}
    assert products(4, 4, 2, 2) == products(2, 4, 1, 2) == {"linear"}
    assert products(128, 2, 64, 2) == {"bmm"}


def test_groups_of_few_channels_are_one_product() -> None:
    """As many groups as make up to 256 channels in whole sticks, or all; 64 channels of their own are left alone."""

    def products(channels: int, own: int, groups: int) -> list[str]:
        called = calls("conv1d", np.zeros((1, channels, 3)), np.zeros((channels, own, 2)), groups=groups)
        return [c for c in called if c in ("bmm", "linear")]

    assert products(128, 4, 32) == products(256, 32, 8) == products(48, 8, 6) == products(200, 40, 5) == ["linear"]
    assert products(512, 32, 16) == products(128, 64, 2) == products(260, 4, 65) == ["bmm"]


@pytest.mark.parametrize(
    ("channels", "kernel", "stride", "summed"),
    [
        (7, 3, 1, 64 * 3),  # rows beside the channels
        (8, 3, 1, 64 * 9),
        (65, 3, 1, 128 * 9),
        (12, 4, 4, 64 * 4),  # rows of 12 x 4 in one stick: a view
        (16, 4, 4, 64 * 16),  # rows of 16 x 4 fill it
    ],
)
def test_channels_fill_whole_sticks(channels: int, kernel: int, stride: int, summed: int) -> None:
    """Zeros behind the channels of a window, or rows if these are few: columns of the matrix that the product takes."""
    layer = torch.nn.Conv2d(channels, 3, kernel, stride, bias=False).half()
    program = import_program(layer, (torch.zeros(1, channels, 8, 8).half(),))
    module = lower(program.module, make_context(), options=FREE).modules
    (product,) = (op for op in module["spyre.loop"].walk() if isinstance(op, NestOp) and op.combine is not None)
    assert prod(product.space.extents[name] for name in product.reduced) == summed


@pytest.mark.parametrize(("shape", "kernel", "stride", "padding", "dilation", "groups"), MERGED)
def test_merged_groups(shape: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int) -> None:
    """The channels of one group alone reach its outputs: those of all others are 1 in one result and 0 in the other."""
    x, weight = whole(*shape), whole(*kernel)
    facts = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    other = np.where((np.arange(shape[1]) < kernel[1]).reshape(1, -1, *(1,) * len(stride)), x, 1)
    first = kernel[0] // groups
    one, two = (result(f"conv{len(stride)}d", values, weight, **facts)[:, :first] for values in (x, other))
    agree(one, two)


def test_taps_of_many_channels_are_copied_in_whole_sticks() -> None:
    """Taps of 80 channels side by side would begin within sticks, where copies lay everything out again."""
    model = torch.nn.Conv1d(80, 64, 3, padding=1)
    modules = lower(import_program(model, (torch.zeros(1, 80, 640),)).module, make_context()).modules
    assert sum(isinstance(op, RestickifyOp) for op in modules["spyre.kernel"].walk()) <= 2


def test_windows_that_do_not_overlap_are_gathered_along_one_dimension() -> None:
    """Five slices along rows of 20 x 5 x 6: the other dimension is a view; with overlap, the taps of both."""

    def slices(channels: int, kernel: Ints, stride: Ints) -> int:
        called = calls("conv2d", np.zeros((1, channels, 6, 15)), np.zeros((3, channels, *kernel)), stride=stride)
        return called.count("slice.Tensor")

    assert slices(20, (2, 5), (2, 5)) == 5
    assert slices(20, (2, 5), (1, 5)) == 2 + 5
    assert slices(20, (3, 3), (3, 3)) == 0  # rows of 20 x 3 lie in one stick: a view


def test_windows_of_one_element_are_not_gathered() -> None:
    """The product clears the lanes behind 144 channels by itself."""
    assert "cat" not in calls("conv2d", np.zeros((1, 144, 4, 5)), np.zeros((24, 144, 1, 1)))


@pytest.mark.parametrize(("image", "kernel", "most"), [((3, 384, 384), (768, 16), 5), ((3, 392, 392), (1152, 14), 6)])
def test_patches_take_few_kernels(image: Ints, kernel: tuple[int, int], most: int) -> None:
    """Gathering the taps of rows, zeros up to whole sticks, other lanes, a product, and a kernel for its layout.

    Columns are a view.

    Fourteen taps do not begin at a divisor of a stick: a copy more.
    """
    outputs, size = kernel
    layer = torch.nn.Conv2d(image[0], outputs, size, stride=size, bias=False).half()
    x = torch.zeros(1, *image, dtype=torch.float16)
    program = import_program(layer, (x,))
    modules = lower(program.module, make_context(), until="spyre.kernel", options=FREE).modules
    assert sum(isinstance(op, ComputeOp | RestickifyOp) for op in modules["spyre.kernel"].walk()) == most


@pytest.mark.parametrize(
    ("shape", "kernel", "facts", "message"),
    [
        ((3, 9), (4, 3, 3, 3), {}, "C1: input and weight differ in spatial dimensions"),
        ((1, 1, 3, 9), (4, 3, 3), {}, "C1: input and weight differ"),
        ((1, 3, 9), (4, 2, 3), {}, "C2: weight takes another number of channels"),
        ((1, 4, 9), (4, 3, 3), {"groups": 2}, "C2: weight takes another"),
        ((1, 3, 4), (2, 3, 2), {"transposed": True}, "C2: weight takes another"),
        ((1, 3, 4), (3, 2, 3), {"transposed": True, "padding": (3,)}, "C3: nothing is left of dimension 0"),
    ],
)
def test_what_does_not_fit_is_refused(shape: Ints, kernel: Ints, facts: dict[str, Any], message: str) -> None:
    said = {"stride": (1,), "padding": (0,), "dilation": (1,), "output_padding": (0,), "groups": 1} | facts
    with pytest.raises(ConstraintError, match=message):
        result("convolution", whole(*shape), whole(*kernel), **({"transposed": False} | said))


@pytest.mark.parametrize("groups", [1, 4])
def test_other_zeros_before_than_behind(groups: int) -> None:
    x, weight = whole(2, 4, 6, 7), whole(4, 4 // groups, 3, 2)
    given = {"stride": (2, 1), "dilation": (1, 2), "groups": groups}
    padded = torch.nn.functional.pad(torch.from_numpy(x), (0, 3, 1, 2))
    wanted = torch.conv2d(padded, torch.from_numpy(weight), **given).numpy()
    agree(result("spyre::convolve_padded", x, weight, before=(1, 0), behind=(2, 3), **given), wanted)


def test_errors_that_are_allowed() -> None:
    wanted = dict.fromkeys(("convolution", "conv", "conv_padding", "convolve_padded", "conv_transpose"), (16, False))
    assert budgets(MODULE) == wanted


def test_samples_fit() -> None:
    check_samples(MODULE)
