"""Bags, segments and parts of rows of which data decides how many there are: each takes in its own rows alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import spyre_mlir
from tests.unit.frontend.data_sizes.programs import X, check_masked, masked

ROWS = torch.cat([X * 3 + 4, X.flip(0) + 3])
WEIGHT = torch.linspace(-1, 1, 20).reshape(5, 4)
BEGINS = torch.tensor([0, 1, 1])


def classes(y: Tensor) -> Tensor:
    return (y * 3).long().abs() % 5


def bags(y: Tensor, mode: str) -> tuple[Tensor, ...]:
    """A bag of one, an empty one, and the rest; all in one; and one for each row."""
    line = classes(y)[:, 0]
    return (
        functional.embedding_bag(line, WEIGHT, BEGINS, mode=mode),
        functional.embedding_bag(line, WEIGHT, BEGINS[:1], mode=mode),
        functional.embedding_bag(classes(y), WEIGHT, mode=mode),
    )


def weighted(y: Tensor) -> tuple[Tensor, ...]:
    line = classes(y)[:, 0]
    return (
        functional.embedding_bag(line, WEIGHT, BEGINS, mode="sum", per_sample_weights=y[:, 1]),
        functional.embedding_bag(classes(y), WEIGHT, mode="sum", per_sample_weights=y),
    )


def lengths(y: Tensor) -> Tensor:
    """The last row, and those in front of it; computed, so that the program knows neither."""
    return torch.stack([(y[:, 0] > -9).sum() - 1, torch.tensor(1)])


def segments(y: Tensor) -> tuple[Tensor, ...]:
    settings = (("sum", None), ("mean", None), ("max", -3.0), ("max", 5.0), ("min", None), ("min", 3.0), ("sum", 2.0))
    return tuple(
        torch.segment_reduce(rows, kind, lengths=lengths(y), axis=0, initial=initial)
        for rows in (y, y[:, 1])
        for kind, initial in settings
    )


def parts(y: Tensor) -> tuple[Tensor, ...]:
    """Of a sequence, of images as high or as wide as there are rows, and of pairs."""
    return (
        functional.adaptive_avg_pool1d(y.t()[None], 2),
        functional.adaptive_max_pool1d(y.t()[None], 3),
        functional.adaptive_avg_pool2d(y[None], 2),
        functional.adaptive_max_pool2d(y[None] - 9, (3, 2)),
        functional.adaptive_avg_pool2d(y.t()[None, None], (3, 4)),
        functional.adaptive_avg_pool2d((y @ y.t())[None], 2),
    )


GROUPS: dict[str, Callable[[Tensor], tuple[Tensor, ...]]] = {
    "sums": lambda y: bags(y, "sum"),
    "means": lambda y: bags(y, "mean"),
    "largest": lambda y: bags(y, "max"),
    "weighted": weighted,
    "segments": segments,
    "parts": parts,
}


@pytest.mark.parametrize("groups", GROUPS)
def test_groups_take_in_their_own_rows(groups: str) -> None:
    for count in (6, 3, 2):
        check_masked(GROUPS[groups], ROWS[:count])


@pytest.mark.filterwarnings("ignore::spyre_mlir.transforms.utils.host_fallback.HostStepWarning")
def test_rows_of_bags_may_require_gradients() -> None:
    """Torch traces another operator for them."""

    class Learned(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rows = nn.EmbeddingBag.from_pretrained(WEIGHT, freeze=False)

        def forward(self, x: Tensor) -> Tensor:
            return self.rows(x[x >= 0].long(), torch.tensor([0, 1]))

    rows = torch.tensor([[1.0, -2, 4, 2], [-1, 3, 0, -1]])
    compiled = spyre_mlir.compile(Learned(), (rows[0],), max_size=4, numerics="exact")
    for given in rows:
        torch.testing.assert_close(compiled(given), Learned()(given).detach())


def test_segments_are_all_rows() -> None:
    """Eager refuses lengths whose sum is another number: the program says that it does not stand for the call."""
    piece = masked(lambda y: (torch.segment_reduce(y, "sum", lengths=torch.tensor([1, 2]), axis=0),))
    (symbol,) = piece.symbols
    for count in (3, 4):
        rows, sizes = torch.ones(count, 4), {symbol: count}
        results = piece.results(piece.model(*piece.arguments((rows,), sizes, {symbol: 9})), sizes)
        assert (results is None) == (count == 4)


def test_bags_begin_among_the_rows() -> None:
    """Eager refuses one that begins behind them."""
    piece = masked(lambda y: (functional.embedding_bag(classes(y)[:, 0], WEIGHT, torch.tensor([0, 3]), mode="sum"),))
    (symbol,) = piece.symbols
    for count in (2, 3):
        rows, sizes = torch.ones(count, 4), {symbol: count}
        results = piece.results(piece.model(*piece.arguments((rows,), sizes, {symbol: 9})), sizes)
        assert (results is None) == (count == 2)


def test_what_has_no_mask() -> None:
    """Rows that are left out of bags, products, means with a first number, and places of the largest."""
    programs: tuple[Callable[[Tensor], Tensor], ...] = (
        lambda y: functional.embedding_bag(classes(y)[:, 0], WEIGHT, BEGINS, padding_idx=1),
        lambda y: torch.segment_reduce(y, "prod", lengths=lengths(y), axis=0),
        lambda y: torch.segment_reduce(y, "mean", lengths=lengths(y), axis=0, initial=1.0),
        lambda y: functional.adaptive_max_pool1d(y.t()[None], 3, return_indices=True)[1],
    )
    for program in programs:
        assert not masked(lambda y, program=program: (program(y),)).is_checked


def test_sizes_are_compared_where_no_constant_counts_as_far() -> None:
    """Two parts of two rows: the numbers of both would be one constant, and two for any other size."""
    piece = masked(lambda y: (functional.adaptive_avg_pool1d(y.t()[None], 2),))
    assert [*piece.least().values()] == [3]
    assert [*masked(lambda y: (y.sum(0),)).least().values()] == [2]
