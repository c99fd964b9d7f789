"""Windows along a size that data decides: behind the rows of the caller is nothing that they read."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn.functional import avg_pool1d, avg_pool2d, conv1d, conv2d, max_pool1d, max_pool2d

from tests.unit.frontend.data_sizes.programs import X, check_masked, masked

ROWS = torch.cat([X + 2, X * 3, X - 0.3])
WEIGHT = torch.linspace(-1, 1, 36).reshape(3, 4, 3)
IMAGES = torch.linspace(-1, 1, 27).reshape(3, 1, 3, 3)
BIAS = torch.tensor([0.5, -1.0, 2.0])

WINDOWS: dict[str, Callable[[Tensor], tuple[Tensor, ...]]] = {
    "padded": lambda y: (conv1d(y.t()[None], WEIGHT, BIAS, padding=1), conv1d(y.t(), WEIGHT, padding=2)),
    "same": lambda y: (conv1d(y.t(), WEIGHT, padding="same"), conv1d(y.t(), WEIGHT, padding="same", dilation=2)),
    "valid": lambda y: (conv1d(y.t(), WEIGHT), conv1d(y.t(), WEIGHT, padding="valid").amax(-1)),
    "strides": lambda y: (conv1d(y.t(), WEIGHT, padding=1, stride=2), conv1d(y.t(), WEIGHT, stride=3)),
    "gaps": lambda y: (conv1d(y.t(), WEIGHT, padding=4, dilation=2),),
    "groups": lambda y: (conv1d(y.t()[None], WEIGHT[:2, :2], padding=1, groups=2),),
    "batch": lambda y: (conv1d(torch.stack([y.t(), -y.t()]), WEIGHT, padding=1).mean(-1),),
    "images": lambda y: (
        conv2d(y[None, None], IMAGES, BIAS, padding=1),
        conv2d(y.t()[None, None], IMAGES, padding=(1, 2), stride=(2, 1)),
        conv2d(y[None, None], IMAGES, padding=(2, 0), dilation=(2, 1)),
    ),
    "images of channels": lambda y: (
        conv2d(torch.stack([y, -y]), WEIGHT.reshape(3, 2, 2, 3)[:, :, :1], padding="same"),
        conv2d(torch.stack([y, -y])[None], IMAGES[:2], groups=2, padding=(1, 0)),
    ),
    "largest": lambda y: (max_pool1d(y.t()[None] - 9, 3, 1, 1), max_pool1d(y.t(), 2), max_pool1d(y.t(), 2, 3, 1, 1)),
    "largest_of_images": lambda y: (
        max_pool2d(y.t()[None, None], 3, 1, 1),
        max_pool2d(y[None, None] - 9, (2, 3), (1, 2), (1, 0), dilation=(2, 1)),
    ),
    "means": lambda y: (
        avg_pool1d(y.t()[None], 3, 1, 1),
        avg_pool1d(y.t(), 2),
        avg_pool1d(y.t(), 3, 2, 1, count_include_pad=False),
    ),
    "means_of_images": lambda y: (
        avg_pool2d(y.t()[None, None], 3, 1, 1),
        avg_pool2d(y[None, None], (2, 3), 1, 1, count_include_pad=False),
    ),
    "unfolded": lambda y: (y.unfold(0, 3, 1), y[:, :2].unfold(0, 2, 2), y.t().unfold(-1, 3, 2).sum(-1)),
}


@pytest.mark.parametrize("windows", WINDOWS)
def test_a_window_reads_no_padding(windows: str) -> None:
    for count in (9, 4):
        check_masked(lambda y: (torch._check(y.shape[0] >= 3), *WINDOWS[windows](y))[1:], ROWS[:count])


def test_a_program_is_compared_for_sizes_that_all_taps_reach() -> None:
    """Taps that reach no row of a short tensor have one constant."""
    for windows, least in ((lambda y: conv1d(y.t(), WEIGHT, padding=1), 2), (WINDOWS["gaps"], 5)):
        piece = masked(lambda y, windows=windows: (windows(y),) if isinstance(windows(y), Tensor) else windows(y))
        assert piece.least()[piece.symbols[0]] == least


def test_rows_of_a_batch_are_no_windows() -> None:
    assert not masked(lambda y: (conv1d(y[:, None], WEIGHT[:, :1], padding=1), max_pool1d(y[:, None], 2))).is_masked
