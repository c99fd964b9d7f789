"""Losses and histograms over rows with a bound: padding has no class, and is in no bin, whatever it holds."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from tests.unit.frontend.data_sizes.programs import X, check_masked, masked

ROWS = X[1:] + 1


def labels(y: Tensor) -> Tensor:
    return (y[:, 0] * 2).long().clamp(0, 3)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize(
    "settings",
    [{}, {"ignore_index": 2}, {"weight": torch.tensor([0.5, 2.0, 1.0, 0.0])}, {"label_smoothing": 0.1}],
    ids=["plain", "ignored", "weights", "smoothing"],
)
def test_padding_has_no_class(reduction: str, settings: dict[str, Any]) -> None:
    def loss(y: Tensor) -> tuple[Tensor, ...]:
        found = [functional.cross_entropy(y, labels(y), reduction=reduction, **settings)]
        if "label_smoothing" not in settings:
            found.append(functional.nll_loss(y.log_softmax(-1), labels(y), reduction=reduction, **settings))
        return (*found, y.sum(0))

    check_masked(loss, ROWS)


@pytest.mark.parametrize("settings", [{}, {"ignore_index": 0}, {"reduction": "sum"}, {"reduction": "none"}])
def test_padding_is_no_class(settings: dict[str, Any]) -> None:
    """As many classes as rows, as in a contrastive loss, and classes of one row."""

    def loss(y: Tensor) -> tuple[Tensor, ...]:
        scores, own = y @ y.t(), torch.arange(y.shape[0])
        found = [functional.cross_entropy(given, own.flip(0), **settings) for given in (scores, scores.t() * 0.5)]
        columns = functional.cross_entropy(y.t(), torch.tensor([0, 1, 1, 0]), **settings)
        return (*found, columns, functional.cross_entropy(scores[0], torch.tensor(1), **settings))

    for rows in (ROWS, torch.cat([ROWS, X + 3])):
        check_masked(loss, rows)


def test_a_target_that_is_no_class_is_told() -> None:
    piece = masked(lambda y: (functional.cross_entropy(y.t(), torch.tensor([0, 4, 1, 1])),))
    (symbol,) = piece.symbols
    for count in (4, 5):
        rows, sizes = torch.ones(count, 4), {symbol: count}
        results = piece.results(piece.model(*piece.arguments((rows,), sizes, {symbol: 9})), sizes)
        assert (results is None) == (count == 4)


def test_padding_is_in_no_bin() -> None:
    check_masked(lambda y: (torch.histc(y, 4, 0.0, 3.0), torch.histc(y[:, 0], 3, -1, 8)), ROWS)


def test_what_has_no_mask() -> None:
    """Distributions, whose mean would count padding, smoothed classes, and bins between extremes of the data."""
    for program in (
        lambda y: functional.cross_entropy(y, y),
        lambda y: functional.cross_entropy(y.t(), torch.tensor([0, 1, 1, 0]), label_smoothing=0.1),
        lambda y: torch.histc(y, 4),
    ):
        assert not masked(lambda y, program=program: (program(y),)).is_masked
