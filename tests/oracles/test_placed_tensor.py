"""The published examples of tensors on the card."""

from __future__ import annotations

import numpy as np
import pytest

from spyre_mlir.hw.sticks import StickLayout
from tests.oracles.placed_tensor import LANES, device_layout, placed, places, read_back

# Sizes on the device and strides on the host, as torch-spyre's documents and layout tests have them.
PUBLISHED = {
    (): ([1, 64], [-1, -1]),
    (200,): ([4, 64], [64, 1]),
    (128, 256): ([4, 128, 64], [64, 256, 1]),
    (128, 200): ([4, 128, 64], [64, 200, 1]),
    (128, 1): ([1, 128, 64], [-1, 1, -1]),
    (1024, 256): ([4, 1024, 64], [64, 256, 1]),
    (5, 100, 150): ([100, 3, 5, 64], [150, 64, 15000, 1]),
    (128, 256, 512): ([256, 8, 128, 64], [512, 64, 131072, 1]),
    (2, 8, 100, 80): ([8, 100, 2, 2, 64], [8000, 80, 64, 64000, 1]),
    (2, 3, 4, 5, 70): ([3, 4, 5, 2, 2, 64], [1400, 350, 70, 64, 4200, 1]),
}


@pytest.mark.parametrize("shape", PUBLISHED, ids=str)
def test_published_layouts(shape: tuple[int, ...]) -> None:
    assert device_layout(shape) == PUBLISHED[shape]


@pytest.mark.parametrize("shape", PUBLISHED, ids=str)
def test_the_default_layout_of_the_compiler_is_the_published_one(shape: tuple[int, ...]) -> None:
    assert StickLayout.default(shape, LANES).device_sizes(shape, LANES) == PUBLISHED[shape]


@pytest.mark.parametrize("shape", [(200,), (3, 70), (2, 5, 65), (2, 3, 4, 70)], ids=str)
def test_elements_lie_where_the_strides_say(shape: tuple[int, ...]) -> None:
    """Elements numbered as on the host: a place on the device holds the sum of coordinates times strides."""
    numbers = np.arange(np.prod(shape), dtype=float).reshape(shape)
    sizes, strides = device_layout(shape)
    held = placed(numbers, np.nan).reshape(sizes)
    for at in np.ndindex(*sizes):
        if not np.isnan(held[at]):
            assert held[at] == sum(a * s for a, s in zip(at, strides, strict=True) if s != -1)
    assert np.isfinite(held).sum() == numbers.size == len(places(shape))
    assert np.array_equal(read_back(placed(numbers, np.nan), shape), numbers)
