"""Calls that order elements along a size that data decides."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan

import pytest
import torch
from torch import Tensor

from tests.unit.frontend.data_sizes.programs import X, check_masked

# Of equal elements, torch's `topk` may give any.
ROWS = torch.cat([X + 2, X * 3.1, X + 2.57]).roll(1, 1)
LINES = torch.linspace(-1, 1, 36).reshape(2, 18).sin()
ORDERS: dict[str, Callable[[Tensor], tuple[Tensor, ...]]] = {
    "sorts": lambda y: (*y.sort(0), *y.t().sort(-1, descending=True), y.argsort(0)),
    "first few": lambda y: (*y.topk(3, 0), *y.t().topk(2, largest=False), *(y[:, 0] * 8).long().topk(1)),
    "as many as rows": lambda y: (
        *LINES.topk(y.shape[0]),
        *LINES.t().topk(y.shape[0], 0, largest=False),
        y.topk(y.shape[0], 0)[0],
    ),
    "one of them": lambda y: (*y.kthvalue(2, 0), *y.t().kthvalue(3, -1, keepdim=True)),
    "medians": lambda y: (*y.median(0), *y.t().median(1, keepdim=True), y[:, 1].median()),
    "extremes": lambda y: (*y.max(0), *y.min(0, keepdim=True), y.argmax(0), y.argmin(0, keepdim=True), y.argmax()),
    "integers": lambda y: (*(y * 8).long().max(0), *(y[:, 0] * 8).int().min(0), *(y * 8).long().median(0)),
}


@pytest.mark.parametrize("order", ORDERS)
def test_order_is_torchs(order: str) -> None:
    for count in (9, 4, 3):
        rows = ROWS[:count].clone()
        check_masked(lambda y: (torch._check(y.shape[0] >= 3), *ORDERS[order](y))[1:], rows)


def test_the_first_of_equal_extremes_counts() -> None:
    """Also where all are infinite, as what fills padding is."""
    equal = torch.tensor([[-inf, inf, 2.0, 1.0], [-inf, inf, 2.0, 3.0], [-inf, inf, 1.0, 3.0]])
    check_masked(lambda y: (*y.max(0), *y.min(0), y.argmax(0), y.argmin(0)), equal)


def test_a_median_with_nan_is_nan() -> None:
    """Not the middle of what is behind all numbers; seen by a test of the result, which hides NaN."""
    rows = ROWS[:5].clone()
    rows[1, 2] = rows[3, 2] = rows[4, 0] = nan
    check_masked(lambda y: ((m := y.median(0))[1], m[0].isnan(), y.t().median(1)[0] > 1, y[:, 2].median() > 1), rows)
