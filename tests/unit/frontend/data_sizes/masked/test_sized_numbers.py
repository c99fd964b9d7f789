"""Numbers that follow from the size of a call, as tensors."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.unit.frontend.data_sizes.programs import X, check_masked, masked

ROWS = X[1:] + 1


def test_numbers_are_those_of_the_call() -> None:
    def program(y: Tensor) -> tuple[Tensor, ...]:
        n = y.shape[0]
        place = torch.arange(n)
        found = (y.sum() * (n - 1), y.sum() / max(n - 1, 0), y.sum() - (5 - n), y.sum() + n * 2)
        compared = (place == n - 1, place < n - 1, y > n - 1, y.amax(1) <= n - 1)
        return *found, *compared, y.sum(0).masked_fill(torch.tensor([True, False, False, True]), n - 1)

    check_masked(program, ROWS)


def test_quantiles_are_those_of_the_call() -> None:
    check_masked(lambda y: (y[:, 0].quantile(0.4), torch.cov(y.t())), ROWS)


def test_numbers_that_no_size_says_are_left_alone() -> None:
    assert not masked(lambda y: (y * 3 - 1,)).is_masked
