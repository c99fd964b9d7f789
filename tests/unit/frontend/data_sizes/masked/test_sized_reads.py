"""Reads of rows of which data decides how many there are: by an index, and from the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from tests.unit.frontend.data_sizes.programs import X, check_masked, masked

ROWS = torch.cat([X + 2, X * 3])
READS: dict[str, Callable[[Tensor], tuple[Tensor, ...]]] = {
    "from the end": lambda y: (y[-1], y.t()[:, -1], (y * 9).long()[-1]),
    "in the other order": lambda y: (y.flip(0), y.flip(0)[0], (y > 2).flip(0)),
    "from another one on": lambda y: (y.roll(1, 0), y.t().roll(-13, 1), y.roll((2, -1), (0, 1)), y[:, 0].roll(1)),
    "by an index": lambda y: (
        y[torch.arange(y.shape[0]) - 1],
        y[torch.tensor([[0, -1], [-1, 0]])],
        y.t()[:, torch.tensor([0, -1, 0])],
        y.index_select(0, torch.zeros(3, dtype=torch.int64)),
        functional.embedding(torch.zeros(2, 2, dtype=torch.int64), y),
        y.gather(0, torch.zeros(2, 4, dtype=torch.int64)),
        y.gather(0, torch.tensor([[0, 1], [1, 0]])),
        y.t().gather(1, torch.tensor([[0, 1], [1, 1], [0, 0], [1, 0]])),
        (y > 2)[:, 1].gather(0, torch.tensor([1, 0, 1])),
    ),
}


@pytest.mark.parametrize("read", READS)
def test_rows_are_those_of_the_caller(read: str) -> None:
    check_masked(READS[read], ROWS)
    check_masked(READS[read], ROWS[:2])


@pytest.mark.parametrize(
    "read",
    [
        lambda y: y[torch.tensor([0, 4])],
        lambda y: y[torch.tensor([0, -5])],
        lambda y: y.index_select(0, torch.tensor([4])),
        lambda y: y.gather(0, torch.tensor([[1, 4, 0, 0]])),
    ],
)
def test_a_row_of_padding_is_none_of_the_callers(read: Callable[[Tensor], Any]) -> None:
    """The program stands for five rows, not for four, where eager has an error."""
    piece = masked(lambda y: (read(y),))
    (symbol,) = piece.symbols
    for count in (4, 5):
        rows, sizes = torch.ones(count, 4), {symbol: count}
        results = piece.results(piece.model(*piece.arguments((rows,), sizes, {symbol: 9})), sizes)
        assert (results is None) == (count == 4)
