"""Channels that are convolved by themselves: torch's values in both forms, and the traffic of the banded one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

import spyre_mlir
from spyre_mlir.dialects.spyre.kernel import ComputeOp, RestickifyOp, device_tensor
from spyre_mlir.frontend import import_program
from spyre_mlir.ops.composed.nn.row_convolution import CONVOLVE_ROWS
from spyre_mlir.pipeline import lower
from spyre_mlir.universe import make_context
from tests.unit.ops.cases import agree, calls, result

Ints = Sequence[int]

# input, taps, stride, padding, dilation
CASES: list[tuple[Any, ...]] = [
    ((1, 3, 5, 40), (3, 3), (1, 1), (1, 1), (1, 1)),
    ((2, 2, 6, 33), (2, 5), (2, 1), (0, 2), (1, 1)),
    ((1, 2, 7, 41), (3, 2), (1, 2), (2, 0), (2, 3)),
    ((1, 2, 4, 70), (1, 3), (1, 3), (0, 4), (1, 2)),
    ((1, 2, 3, 36), (3, 1), (1, 1), (1, 20), (1, 1)),  # more places than columns
    ((1, 2, 4, 32), (3, 3), (1, 1), (1, 1), (1, 1)),  # too few columns
    ((1, 2, 2, 129), (2, 3), (1, 1), (0, 1), (1, 1)),  # too many
]


def layer(channels: int, taps: Ints, **facts: Any) -> torch.nn.Module:
    """A convolution in half precision with weights of eighths."""
    torch.manual_seed(7)
    made = torch.nn.Conv2d(channels, channels, tuple(taps), groups=channels, **facts).half()
    for parameter in made.parameters():
        parameter.data = (parameter.data * 8).round() / 8
    return made


@pytest.mark.parametrize(("shape", "taps", "stride", "padding", "dilation"), CASES)
@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("overload", ["conv2d", CONVOLVE_ROWS])
def test_values_are_those_of_torch(
    shape: Ints, taps: Ints, stride: Ints, padding: Ints, dilation: Ints, with_bias: bool, overload: str
) -> None:
    random = np.random.default_rng(4)
    channels = shape[1]
    x, weight, bias = (random.integers(-4, 5, s).astype(np.float64) for s in (shape, (channels, 1, *taps), (channels,)))
    given = (x, weight, bias) if with_bias else (x, weight)
    facts = {"stride": tuple(stride), "padding": tuple(padding), "dilation": tuple(dilation), "groups": channels}
    wanted = functional.conv2d(*(torch.from_numpy(v) for v in given), **facts).numpy()
    agree(result(overload, *given, **facts), wanted)


@pytest.mark.parametrize(
    ("columns", "taps", "padding", "products"),
    [(32, 9, 4, 0), (33, 9, 4, 3), (128, 9, 4, 3), (129, 9, 4, 0), (120, 9, 12, 0), (56, 8, 4, 0)],
)
def test_rows_of_large_windows_are_products(columns: int, taps: int, padding: int, products: int) -> None:
    """More than 25 taps over rows of 33 to 128 columns in image and result; the last but one result has 136."""
    image, weight = np.zeros((1, 2, 4, columns)), np.zeros((2, 1, 3, taps))
    called = calls("conv2d", image, weight, padding=(1, padding), groups=2)
    assert called.count("matmul") == products


def test_no_matrices_for_other_than_two_dimensions() -> None:
    assert "matmul" not in calls("conv1d", np.zeros((1, 2, 40)), np.zeros((2, 1, 3)), groups=2)
    assert "matmul" not in calls("conv3d", np.zeros((1, 2, 3, 3, 40)), np.zeros((2, 1, 3, 3, 3)), groups=2)


def test_nothing_is_laid_out_again_between_convolutions_of_all_channels() -> None:
    """Channels are in the lanes of the image, of the taps, and of the result, though columns would fill them better."""
    facts = {"bias": False, "dtype": torch.float16}
    own = torch.nn.Conv2d(144, 144, 3, padding=1, groups=144, **facts)
    made = torch.nn.Sequential(torch.nn.Conv2d(24, 144, 1, **facts), own, torch.nn.Conv2d(144, 24, 1, **facts))
    x, free = torch.zeros(1, 24, 56, 56, dtype=torch.float16), {"place-inputs": {"inputs": "free"}}
    modules = lower(import_program(made, (x,)).module, make_context(), until="spyre.kernel", options=free).modules
    assert not any(isinstance(op, RestickifyOp) for op in modules["spyre.kernel"].walk())


@pytest.mark.parametrize(("stride", "taps"), [(1, 3), (2, 5)])
def test_an_image_goes_through_device_memory_once(stride: int, taps: int) -> None:
    """Between images one kernel reads, one writes the result; all others work in the scratchpads, or on tables."""
    made = layer(64, (taps, taps), padding=taps // 2, stride=stride, bias=False)
    x = torch.zeros(1, 64, 56, 56, dtype=torch.float16)
    modules = lower(import_program(made, (x,)).module, make_context(), until="spyre.kernel").modules
    kernels = [op for op in modules["spyre.kernel"].walk() if isinstance(op, ComputeOp | RestickifyOp)]
    large = [
        (op.function_name if isinstance(op, ComputeOp) else op.name, value is op.output)
        for op in kernels
        for value in op.operands
        if (tensor := device_tensor(value)).space == "hbm" and tensor.sticks > 1700
    ]
    assert [written for _, written in large] == [False, True]


@pytest.mark.parametrize(("shape", "taps", "stride", "padding", "dilation"), [CASES[0], CASES[2], CASES[3]])
def test_every_level_agrees_with_torch(shape: Ints, taps: Ints, stride: Ints, padding: Ints, dilation: Ints) -> None:
    made = layer(shape[1], taps, stride=tuple(stride), padding=tuple(padding), dilation=tuple(dilation))
    x = torch.randn(*shape, generator=torch.Generator().manual_seed(8)).half()
    assert (outcome := spyre_mlir.compile(made, (x,)).verify(x)), str(outcome)
