"""Reads by several indices together: each names rows of the caller, or columns, and padding is none of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.unit.frontend.data_sizes.programs import X, check_masked, masked

ROWS = torch.cat([X * 3 + 4, X.flip(0) + 3])
TABLE = torch.linspace(-2, 2, 24).reshape(6, 4)
NUMBERS = torch.arange(9) * 2


def places(y: Tensor) -> Tensor:
    """A column for each row, and more."""
    return (y * 3).long().abs() % 4


def all_of(y: Tensor) -> Tensor:
    return torch.arange(y.shape[0])


def order(y: Tensor) -> Tensor:
    return y[:, 1].argsort()


def scores(y: Tensor) -> Tensor:
    return y @ y.t()


READS: dict[str, Callable[[Tensor], tuple[Tensor, ...]]] = {
    "a column for each row": lambda y: (
        y[all_of(y), places(y)[:, 0]],
        y[all_of(y), -1 - places(y)[:, 1]],
        y[all_of(y)[:, None], y.topk(2)[1]],
        (y > 3)[all_of(y), places(y)[:, 0]],
        places(y)[all_of(y), places(y)[:, 0]],
    ),
    "other rows": lambda y: (
        y[order(y), places(y)[:, 0]],
        y[order(y)[:, None], torch.tensor([[0, 2]])],
        y[order(y) - y.shape[0], places(y)[:, 0]],
    ),
    "pairs": lambda y: (
        scores(y)[all_of(y), all_of(y).flip(0)],
        scores(y)[all_of(y)[:, None], order(y)],
        scores(y)[order(y)[:, None], order(y)[None]],
    ),
    "tables": lambda y: (
        TABLE[order(y)[:, None], torch.tensor([1, 3])],
        TABLE[places(y)[:, 0], places(y)[:, 1]],
        NUMBERS[torch.stack([places(y)[:, 0]] * 2)],
        TABLE.t()[:, torch.stack([places(y)[:, 0]] * 3)],
        y.sum(0),
    ),
    "dimensions between": lambda y: (
        y.reshape(-1, 2, 2)[all_of(y), :, places(y)[:, 0] % 2],
        torch.stack([y, -y])[:, all_of(y), places(y)[:, 0]],
        torch.stack([y, -y])[:, order(y)[:, None], places(y)[:, :2]],
        y[all_of(y), places(y)[:, 0]].sum(0),
    ),
}


@pytest.mark.parametrize("read", READS)
def test_elements_are_those_of_the_caller(read: str) -> None:
    for count in (6, 2):
        check_masked(READS[read], ROWS[:count])


@pytest.mark.parametrize(
    "read",
    [
        lambda y: y[torch.tensor([0, 4]), torch.tensor([1, 1])],
        lambda y: y[all_of(y), all_of(y)],
        lambda y: y[torch.tensor([[0], [-5]]), torch.tensor([1, 1])],
    ],
    ids=["a row", "a column", "from the end"],
)
def test_what_names_no_element_is_told(read: Callable[[Tensor], Any]) -> None:
    """Five columns stand for five rows, and four for four: the program says that it stands for no such call."""
    piece = masked(lambda y: (read(torch.cat([y, y[:, :1]], 1) if "all_of" in read.__code__.co_names else y),))
    (symbol,) = piece.symbols
    counts = (5, 6) if "all_of" in read.__code__.co_names else (5, 4)
    for count, stands in zip(counts, (True, False), strict=True):
        rows, sizes = torch.ones(count, 4), {symbol: count}
        results = piece.results(piece.model(*piece.arguments((rows,), sizes, {symbol: 9})), sizes)
        assert (results is not None) == stands


def test_what_reads_known_rows_has_no_mask() -> None:
    """Two lines of numbers gather from a table, whatever is behind them."""
    assert not masked(lambda y: (TABLE[places(y)[:, 0], places(y)[:, 1]],)).is_masked
