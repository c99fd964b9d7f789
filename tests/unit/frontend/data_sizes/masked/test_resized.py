"""Results that are longer or shorter than a size that data decides: parts, padding, slices, and products."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from tests.unit.frontend.data_sizes.programs import X, check_masked, masked

ROWS = torch.cat([X + 2, X * 3])
LONG = torch.linspace(-2, 2, 36).reshape(9, 4)
LINE = torch.arange(8.0).reshape(2, 4)


def sliced(y: Tensor) -> tuple[Tensor, ...]:
    torch._check(y.shape[0] >= 3)
    return y[1:] - y[:-1], y[-2:], y[-3:-1], y[2:].sum(0), y.t()[:, 1:].softmax(-1)


def written(y: Tensor) -> tuple[Tensor, ...]:
    """Slices that are written: in front, behind rows, from a size on, along columns, over padded rows."""
    count = y.shape[0]
    front, rest = torch.cat([LONG + 1, LONG]), torch.cat([LONG, LONG])
    behind, columns = (rest * 5).long(), rest.t() * 3
    front[:count] = y
    behind[2 : count + 2] = (y * 3).long()
    rest[18 - count :] = y
    columns[:, 1 : count + 1] = y.t()
    rows = torch.cat([LINE, y])
    rows[:count] = y * 2
    rest[count:] = 0.5
    return front * 2, behind * 2, rest.sum(0), columns * 2, rows * 2


def written_before_the_first(y: Tensor) -> tuple[Tensor, ...]:
    """A slice that would start in front of nine rows starts at the first one, whether a number says so or a size."""
    count, stated, sized = y.shape[0], LONG.clone(), LONG.clone()
    stated[-10:count] = y
    sized[-count - 9 : count] = y
    return stated * 2, sized * 2


RESULTS: dict[str, Callable[[Tensor], tuple[Tensor, ...]]] = {
    "parts": lambda y: (
        torch.cat([y, LINE, y * 2]),
        torch.cat([LINE, y]).sum(0),
        torch.cat([y.t(), LINE.t()], -1).softmax(-1),
        torch.cat([y > 2, y > 1]),
        torch.cat([(y * 3).long(), LINE]),
        torch.cat([y, y], 1),
        torch.cat([y, LINE]) / (y.shape[0] + 2),
    ),
    "padding": lambda y: (
        functional.pad(y, (0, 0, 1, 2), value=3.5).logsumexp(0),
        functional.pad(y, (0, 0, 2, 0)),
        functional.pad((y * 3).long(), (0, 0, 0, 1), value=-2),
        functional.pad(y > 2, (0, 0, 1, 1), value=1),
        functional.pad(y, (0, 0, -1, 1), value=2.0).amin(0),
        functional.pad(y, (0, 0, 0, 9 - y.shape[0])),
    ),
    "slices": sliced,
    "the rest": lambda y: (
        LONG[y.shape[0] :] * 2,
        LONG.t()[:, y.shape[0] :].sum(-1),
        *(part.softmax(0) for part in LONG.split([y.shape[0], 9 - y.shape[0]])),
    ),
    "written slices": written,
    "written before the first": written_before_the_first,
    "as many as there are": lambda y: (
        *y[:, 0].topk(min(5, y.shape[0])),
        *y.topk(min(3, y.shape[0]), 0, largest=False),
        torch.cat([LONG, LINE])[: y.shape[0] + 1] * 2,
        torch.cat([LONG, LINE])[1 : y.shape[0] + 2].softmax(0),
    ),
    "made": lambda y: (
        torch.zeros(y.shape[0] + 1, 4).index_add(0, torch.arange(y.shape[0]) // 2, y),
        (torch.arange(y.shape[0] + 2)[None] < torch.tensor([[3], [5]])).sum(-1),
        torch.full((4, y.shape[0] - 1), 2.5).softmax(-1),
    ),
    "merged": lambda y: (
        y.t().reshape(-1) * 2,
        y.t().flatten().softmax(0),
        torch.stack([y, -y]).flatten(0, 1).sum(0),
        torch.stack([y, y * 2, y - 1]).reshape(-1, 2).amax(0),
        torch.stack([y.t(), y.t() * 2]).reshape(2, -1).cumsum(1),
        (y * 3).long().t().reshape(-1),
        (y > 2).t().reshape(-1),
    ),
    "products": lambda y: (
        y.prod(0),
        y.prod(),
        y.cumprod(0),
        y.t().cumprod(-1),
        (y * 3).long().prod(0, keepdim=True),
        (y > 2).prod(0),
        y.prod(0, dtype=torch.float64),
    ),
}


@pytest.mark.parametrize("results", RESULTS)
def test_rows_are_those_of_the_caller(results: str) -> None:
    check_masked(RESULTS[results], ROWS)
    check_masked(RESULTS[results], ROWS[:4])


def test_one_size_has_one_mask() -> None:
    """What is as long as another result has its mask, and the number of rows is the length of it."""
    piece = masked(lambda y: (torch.cat([y, LINE]), torch.cat([LINE, y * 2]) + torch.arange(y.shape[0] + 2)[:, None]))
    assert len(piece.symbols) == 2
    size, longer = piece.symbols
    assert piece.with_derived({size: 5}) == {size: 5, longer: 7}


def test_a_size_that_falls_with_another_has_its_largest_value_where_that_is_least() -> None:
    piece = masked(lambda y: (LONG[y.shape[0] :].sum(0),))
    size, rest = piece.symbols
    assert piece.with_largest_derived({size: 8}) == {size: 8, rest: 9}
    assert piece.with_derived({size: 8}) == {size: 8, rest: 1}


def test_sizes_that_nobody_reads_are_none() -> None:
    piece = masked(lambda y: (y.repeat_interleave(2, 0)[1:], y.sum(0)))
    assert len(piece.symbols) == 1
