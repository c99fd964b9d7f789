"""Pairs of as many rows as data decides, in one dimension and back: padding stands behind all of them."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.unit.frontend.data_sizes.programs import X, check_masked, masked

ROWS = torch.cat([X * 3 + 4, X.flip(0) + 3])
WEIGHT = torch.linspace(-1, 1, 24).reshape(8, 3)


def pairs(y: Tensor) -> tuple[Tensor, ...]:
    """Scores in a line and back, and features of both rows."""
    count, scores = y.shape[0], y @ y.t()
    both = torch.cat([y[:, None].expand(-1, count, -1), y[None].expand(count, -1, -1)], -1)
    parted = scores.flatten().softmax(0).view(count, count)
    return (
        scores.reshape(count * count),
        (scores > 20).flatten(),
        both.reshape(-1, 8) @ WEIGHT,
        parted.cumsum(1),
        (both.reshape(-1, 8) @ WEIGHT).view(count, count, 3).amax(1),
        scores.flatten().sum(),
    )


def test_pairs_are_those_of_the_caller() -> None:
    for count in (6, 3, 2):
        check_masked(pairs, ROWS[:count])


def test_three_dimensions_in_one_stay() -> None:
    piece = masked(lambda y: ((y[:, None] * y[None]).reshape(-1) * 2,))
    assert not piece.is_masked
