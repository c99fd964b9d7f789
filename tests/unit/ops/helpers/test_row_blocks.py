"""Blocks of rows in the lanes: torch's values, which convolutions take that form, and what the card moves."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

import spyre_mlir
from spyre_mlir.dialects.spyre.kernel import ComputeOp, RestickifyOp, device_tensor
from spyre_mlir.dialects.spyre.loop import NestOp
from spyre_mlir.frontend import import_program
from spyre_mlir.options import CompileOptions
from spyre_mlir.pipeline import lower
from spyre_mlir.universe import make_context
from tests.unit.ops.cases import agree, result

Ints = Sequence[int]
# Placed images of few channels may be convolved row by row instead, and results as they are placed take a kernel more.
FREE = CompileOptions(inputs="free").passes()

# input, outputs and taps, stride, padding, dilation
CASES: list[tuple[Any, ...]] = [
    ((2, 3, 12, 14), (5, 7, 7), (2, 2), (3, 3), (1, 1)),  # rows of the next block
    ((1, 3, 16, 300), (5, 7, 7), (2, 2), (3, 3), (1, 1)),  # eight rows of places at once
    ((1, 1, 40, 70), (3, 11, 2), (4, 1), (2, 0), (1, 1)),  # three
    ((1, 3, 24, 20), (4, 3, 3), (1, 1), (1, 1), (1, 1)),
    ((1, 1, 40, 9), (3, 11, 2), (4, 1), (2, 0), (1, 1)),  # rows of the next two blocks
    ((2, 7, 13, 8), (66, 2, 4), (3, 1), (0, 2), (1, 2)),  # rows that no window reads
    ((1, 2, 6, 11), (3, 4, 1), (1, 2), (2, 1), (1, 1)),
    ((1, 4, 9, 16), (2, 1, 3), (2, 1), (0, 1), (1, 1)),
    ((1, 6, 11, 9), (2, 12, 3), (1, 1), (1, 1), (1, 1)),  # six channels under twelve rows are more than a stick
    ((1, 2, 9, 9), (2, 3, 3), (1, 1), (1, 1), (2, 1)),  # gaps between rows
]


def summed(channels: int, places: int, kernel: int, stride: int) -> int:
    """Elements that the product of an image of so many places sums over."""
    layer, extent = torch.nn.Conv2d(channels, 64, kernel, stride, bias=False).half(), (places - 1) * stride + kernel
    x = torch.zeros(1, channels, extent, extent).half()
    module = lower(import_program(layer, (x,)).module, make_context(), options=FREE).modules["spyre.loop"]
    (product,) = (op for op in module.walk() if isinstance(op, NestOp) and op.combine is not None)
    return prod(product.space.extents[name] for name in product.reduced)


@pytest.mark.parametrize(("shape", "taps", "stride", "padding", "dilation"), CASES)
@pytest.mark.parametrize("with_bias", [False, True])
def test_values_are_those_of_torch(
    shape: Ints, taps: Ints, stride: Ints, padding: Ints, dilation: Ints, with_bias: bool
) -> None:
    random = np.random.default_rng(4)
    sizes = (shape, (taps[0], shape[1], *taps[1:]), taps[:1])
    x, weight, bias = (random.integers(-4, 5, s).astype(np.float64) for s in sizes)
    given = (x, weight, bias) if with_bias else (x, weight)
    facts = {"stride": tuple(stride), "padding": tuple(padding), "dilation": tuple(dilation)}
    wanted = functional.conv2d(*(torch.from_numpy(v) for v in given), **facts).numpy()
    agree(result("conv2d", *given, **facts), wanted)


@pytest.mark.parametrize(
    ("channels", "places", "kernel", "stride", "depth"),
    [
        (3, 112, 7, 2, 64 * 7),  # a stick for every column of the window
        (7, 56, 3, 1, 64 * 3),
        (8, 56, 3, 1, 64 * 9),  # channels with sticks of their own
    ],
)
def test_few_channels_have_rows_in_their_lanes(
    channels: int, places: int, kernel: int, stride: int, depth: int
) -> None:
    assert summed(channels, places, kernel, stride) == depth


def test_a_small_image_has_a_small_matrix() -> None:
    """The lanes have room for the windows of all 28 rows of places, whose matrix would be larger than the windows."""
    layer = torch.nn.Conv2d(1, 32, 3, padding=1, bias=False).half().eval()
    program = lower(import_program(layer, (torch.zeros(1, 1, 28, 28).half(),)).module, make_context())
    (product,) = (
        op
        for op in program.modules["spyre.kernel"].walk()
        if isinstance(op, ComputeOp) and op.function_name == "batchmatmul"
    )
    assert 3 * 64 * 64 <= prod(device_tensor(product.operands[1]).shape) <= 28 * 28 * 64


def test_an_image_goes_through_device_memory_as_often_as_it_is_moved_not_as_windows_overlap() -> None:
    layer = torch.nn.Conv2d(3, 64, 7, 2, 3, bias=False).half().eval()
    x = torch.zeros(1, 3, 64, 64).half()
    modules = lower(import_program(layer, (x,)).module, make_context(), options=FREE).modules
    turned = [op for op in modules["spyre.kernel"].walk() if isinstance(op, RestickifyOp)]
    assert turned, "the image has its columns in the lanes when it comes"
    # Windows of all places have 32 x 32 x 147 elements.
    assert all(prod(device_tensor(value).shape) <= 4 * 64 * 64 * 3 for op in turned for value in op.operands)


@torch.no_grad()
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_every_level_agrees_with_torch(dtype: torch.dtype) -> None:
    torch.manual_seed(3)
    layer = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 5, 2, 2), torch.nn.ReLU()).to(dtype).eval()
    x = torch.randn(2, 3, 24, 18).to(dtype)
    program = spyre_mlir.compile(layer, (x,))
    assert program.verify(x)
    torch.testing.assert_close(program(x), layer(x), rtol=0.02, atol=0.02)
