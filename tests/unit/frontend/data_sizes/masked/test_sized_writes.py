"""Writes of as many rows as data decides: the last one for a place stays, as in torch, and padding writes none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.unit.frontend.data_sizes.programs import X, check_masked, masked

ROWS = torch.cat([X + 2, X * 3])
BASE = torch.arange(20.0).reshape(5, 4)


def named(y: Tensor) -> Tensor:
    """A place for each row, some of them twice."""
    return (y[:, 0] * 7).long() % 5


def order(y: Tensor) -> Tensor:
    """The rows, the last one first."""
    return torch.arange(y.shape[0]).flip(0)


def line(y: Tensor) -> Tensor:
    return named(y)[:, None].expand(-1, 4)


def columns(y: Tensor) -> Tensor:
    made = BASE.t().clone()
    made[:, named(y)] = y.t()
    return made


WRITES: dict[str, Callable[[Tensor], tuple[Tensor, ...]]] = {
    "rows": lambda y: (BASE.index_put((named(y),), y), BASE.long().index_put((named(y) - 5,), (y * 9).long())),
    "a number": lambda y: (BASE.index_put((named(y),), torch.tensor(7.0)), BASE.index_fill(0, named(y), -2.5)),
    "columns": lambda y: (columns(y),),
    "elements": lambda y: (BASE.index_put((named(y), named(y) % 4), y[:, 1]),),
    "added": lambda y: (
        BASE.index_put((named(y),), y, accumulate=True),
        BASE.index_put((named(y), named(y) % 4), y[:, 1], accumulate=True),
        BASE.index_add(0, named(y), y, alpha=0.5),
        BASE.scatter_add(0, named(y)[:, None].expand(-1, 4), y),
        BASE.scatter_reduce(0, named(y)[:, None].expand(-1, 4), y, "sum"),
    ),
    "extremes of rows": lambda y: (
        *(BASE.index_reduce(0, named(y), y, kind) for kind in ("amax", "amin", "mean")),
        *(BASE.index_reduce(0, named(y), y, kind, include_self=False) for kind in ("amax", "amin", "mean")),
        BASE.t().index_reduce(1, named(y), y.t(), "amax"),
    ),
    "among the rows": lambda y: (
        y.index_put((order(y),), y * 2),
        y.index_put((order(y) - y.shape[0],), y),
        y.index_put((order(y) // 2,), y, accumulate=True),
        y.index_copy(0, order(y), y + 1),
        y.index_put((y[:, 0] > 2,), torch.tensor(5.0)),
        y.long().index_put((order(y),), (y * 9).long()),
    ),
    "copied": lambda y: (BASE.index_copy(0, named(y), y),),
    "scattered": lambda y: (
        BASE.scatter(0, (y * 5).long().abs() % 5, y),
        BASE.scatter(0, (y * 5).long().abs() % 5, 2.5),
        BASE.t().scatter(1, (y.t() * 5).long().abs() % 5, y.t()),
    ),
    "extremes": lambda y: (
        *(BASE.scatter_reduce(0, line(y), y * 9, kind) for kind in ("amax", "amin", "mean")),
        *(BASE.scatter_reduce(0, line(y), y, kind, include_self=False) for kind in ("amax", "amin", "mean", "sum")),
        BASE.long().scatter_reduce(0, line(y), (y * 9).long(), "amax"),
        BASE.long().scatter_reduce(0, line(y), (y * 9).long(), "amin", include_self=False),
        BASE.t().scatter_reduce(1, line(y).t(), y.t() * 9, "amax"),
    ),
    "infinities": lambda y: (
        BASE.index_put((named(y),), y.where(y < 2, torch.inf)) > 0,
        BASE.index_put((named(y),), y.where(y < 2, torch.inf), accumulate=True) > 0,
        y.where(y < 2, torch.inf).flip(0) > 0,
    ),
    "integers": lambda y: (BASE.long().index_put((named(y),), (y * 9).long(), accumulate=True),),
}


@pytest.mark.filterwarnings("ignore:index_reduce.. is in beta")
@pytest.mark.parametrize("write", WRITES)
def test_padding_writes_nothing(write: str) -> None:
    check_masked(WRITES[write], ROWS)
    check_masked(WRITES[write], ROWS[:1])


def test_rows_where_a_mask_is_true() -> None:
    """As many as the mask says, of any type; more of them only for `masked_scatter`."""
    base = torch.arange(36.0).reshape(9, 4)
    mask = torch.tensor([True, False, True, True, False, True, False, True, True])

    def written(y: Tensor) -> Any:
        first = mask.cumsum(0) <= y.shape[0]
        many = base.index_put((mask & first,), y), base.long().index_put((mask & first,), (y * 9).long())
        return (*many, base[:, 0].masked_scatter(mask & first, y[:, 0]))

    check_masked(written, ROWS)

    def few(y: Tensor) -> Any:
        return (base.index_put((mask,), y),)

    def line(y: Tensor) -> Any:
        return (base[:, 0].masked_scatter(mask, y[:, 0]),)

    for function, counts in ((few, {6}), (line, {6, 7})):
        piece = masked(function)
        (symbol,) = piece.symbols
        for count in (5, 6, 7):
            sizes = {symbol: count}
            rows = torch.ones(count, 4)
            results = piece.results(piece.model(*piece.arguments((rows,), sizes, {symbol: 9})), sizes)
            assert (results is not None) == (count in counts), (function.__name__, count)


def test_what_is_not_written_out_has_no_mask() -> None:
    assert not masked(lambda y: (y.scatter(1, torch.zeros(1, 1, dtype=torch.int64), 2.0),)).is_masked
