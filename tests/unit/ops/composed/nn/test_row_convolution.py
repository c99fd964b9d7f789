"""Convolutions that keep columns of images in the lanes, against torch's on whole numbers."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from spyre_mlir.ops.composed.nn.row_convolution import CONVOLVE_ROWS
from tests.unit.ops.cases import Array, check_samples, result

RNG = np.random.default_rng(3)


def whole(*shape: int) -> Array:
    return RNG.integers(-4, 5, shape).astype(np.float64)


@pytest.mark.parametrize(
    ("image", "weight", "padding", "groups"),
    [
        ((1, 3, 5, 7), (4, 3, 3, 3), (1, 1), 1),
        ((2, 3, 5, 7), (4, 3, 1, 1), (0, 0), 1),
        # More places than columns, fewer, and windows of even sizes.
        ((1, 2, 4, 5), (3, 2, 2, 3), (1, 2), 1),
        ((1, 2, 4, 5), (3, 2, 3, 2), (0, 0), 1),
        ((2, 6, 4, 5), (4, 3, 3, 3), (1, 1), 2),
        ((1, 4, 4, 5), (8, 1, 2, 2), (1, 0), 4),
        # Rows of zeros alone are under the first and the last place.
        ((1, 4, 3, 5), (2, 2, 3, 1), (2, 0), 2),
    ],
)
def test_convolutions_are_those_of_torch(
    image: tuple[int, ...], weight: tuple[int, ...], padding: tuple[int, int], groups: int
) -> None:
    x, w, bias = whole(*image), whole(*weight), whole(weight[0])
    wanted = torch.conv2d(*map(torch.from_numpy, (x, w, bias)), padding=padding, groups=groups).numpy()
    np.testing.assert_array_equal(result(CONVOLVE_ROWS, x, w, bias, padding=padding, groups=groups), wanted)
    np.testing.assert_array_equal(
        result(CONVOLVE_ROWS, x, w, padding=padding, groups=groups), wanted - bias.reshape(-1, 1, 1)
    )


@pytest.mark.parametrize(
    ("image", "weight"),
    [
        ((1, 3, 8, 12), (4, 3, 4, 4)),
        ((2, 3, 7, 9), (4, 3, 3, 2)),
        ((1, 1, 5, 400), (2, 1, 5, 3)),
        ((1, 2, 3, 4), (3, 2, 1, 2)),
    ],
)
def test_patches_are_those_of_torch(image: tuple[int, ...], weight: tuple[int, ...]) -> None:
    """Rows and columns that fill no window are left out; 133 places of a row take three sticks."""
    x, w, bias = whole(*image), whole(*weight), whole(weight[0])
    wanted = torch.conv2d(*map(torch.from_numpy, (x, w, bias)), stride=weight[2:]).numpy()
    got = result(CONVOLVE_ROWS, x, w, bias, padding=(0, 0), stride=weight[2:])
    np.testing.assert_array_equal(got, wanted)


def test_samples() -> None:
    check_samples("spyre_mlir.ops.composed.nn.row_convolution")
