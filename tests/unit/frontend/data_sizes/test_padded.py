"""Arguments and results of a piece that runs on padded tensors, and which sizes it stands for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from spyre_mlir.frontend.data_sizes.dividing import Piece
from spyre_mlir.frontend.data_sizes.padded import PaddedPiece, reads_data_size, size_makers
from tests.unit.frontend.data_sizes.programs import X, division


def pieces(program: Callable[..., Any], *args: Any) -> list[Piece]:
    return [step for step in division(program, *args).steps if isinstance(step, Piece)]


def last(program: Callable[..., Any], *args: Any) -> PaddedPiece:
    return PaddedPiece(pieces(program, *args)[-1], "Last", masked=False)


def test_arguments_have_zeros_behind_them_and_results_are_cut() -> None:
    piece = last(lambda x: x[x.sum(-1) > 0] * 2)
    (symbol,) = piece.symbols
    assert piece.upper(symbol) == 3
    (padded,) = piece.arguments((X[1:],), {symbol: 2}, {symbol: 4})
    assert torch.equal(padded, torch.cat([X[1:], torch.zeros(2, 4)]))
    (result,) = piece.results(piece.model(padded), {symbol: 2})
    assert torch.equal(result, X[1:] * 2)
    assert piece.sizes_of((X[1:],)) == {symbol: 2}
    assert piece.dynamic_shapes()[0].keys() == {0}


def test_a_number_that_is_a_size_is_asked_of_a_mask() -> None:
    def counted(i: Tensor) -> Tensor:
        count = i.max().item()
        torch._check(count >= 0)
        torch._check(count <= 6)
        return torch.arange(count) * 2

    piece = last(counted, torch.tensor([1, 3]))
    (symbol,) = piece.symbols
    assert piece.upper(symbol) == 6
    (mask,) = piece.arguments((3,), {symbol: 3}, {symbol: 6})
    assert mask.tolist() == [True] * 3 + [False] * 3
    (result,) = piece.results(piece.model(mask), {symbol: 3})
    assert result.tolist() == [0, 2, 4]


def test_sizes_that_contradict_each_other_are_none() -> None:
    def twice_selected(x: Tensor) -> Tensor:
        mask = x.sum(-1) > 0
        return x[mask] * (x + 1)[mask]

    piece = last(twice_selected)
    assert piece.sizes_of((X, X)) is not None
    assert piece.sizes_of((X[:2], X)) is None


def test_only_parts_behind_a_size_read_one() -> None:
    assert [reads_data_size(piece) for piece in pieces(lambda x: x[x > 0] * 2)] == [False, True]


def test_makers_are_named() -> None:
    ((symbol, (op, place)),) = size_makers(division(lambda x: x[x > 0] * 2)).items()
    assert (symbol, op) == ("u0", "aten.index.Tensor")
    assert ".py:" in place


@pytest.mark.parametrize(("size", "same"), [(0, False), (1, True)])
def test_torch_says_if_a_small_size_has_the_shapes_of_others(size: int, same: bool) -> None:
    piece = last(lambda x: x[x.sum(-1) > 0].amax(0))
    (symbol,) = piece.symbols
    assert piece.keeps_shapes((torch.ones(size, 4),), {symbol: size}) is same


def test_a_size_of_one_that_broadcasts_has_other_shapes() -> None:
    piece = last(lambda x: x[x.sum(-1) > 0].squeeze(0) * 2)
    (symbol,) = piece.symbols
    assert piece.keeps_shapes((torch.ones(2, 4),), {symbol: 2})
    assert not piece.keeps_shapes((torch.ones(1, 4),), {symbol: 1})
