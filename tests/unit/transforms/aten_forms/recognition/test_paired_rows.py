"""Rows of pairs of a token and an expert, which a product with weights adds up."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.tensors import shape_of
from spyre_mlir.frontend import import_program
from spyre_mlir.transforms.aten_forms.recognition.paired_rows import paired_rows
from spyre_mlir.transforms.aten_forms.recognition.sorted_rows import ExpertRows
from tests.unit.transforms.aten_forms.paired_mixtures import PairedGiven, PairedMixture, paired_inputs


def found(model: torch.nn.Module, tokens: int = 7) -> ExpertRows | None:
    module = import_program(model, paired_inputs(tokens)).module
    recognised = [rows for op in module.walk() if isinstance(op, AtenOp) and (rows := paired_rows(op)) is not None]
    assert len(recognised) <= 1
    return recognised[0] if recognised else None


@pytest.mark.parametrize(("biased", "tables"), [(False, 0), (True, 2)])
def test_a_mixture(biased: bool, tables: int) -> None:
    rows = found(PairedMixture(biased=biased))
    assert rows is not None and rows.weights is not None
    assert (rows.routing.tokens, rows.routing.choices, rows.routing.experts) == (7, 2, 5)
    assert shape_of(rows.weights) == (7, 2)
    assert len(rows.experts) == tables
    assert [shape_of(value) for value in rows.tokens] == [(7, 8)]
    assert sum(op.overload == "moe::moe_mm" for op in rows.steps) == 2


class Other(PairedMixture):
    """Rows that are added up in another way."""

    def __init__(self, end: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__(biased=False)
        self.end = end

    def mixed(self, x: Tensor, chosen: Tensor, weights: Tensor) -> Tensor:
        rows = self._product(x, self.w13, self.w13_bias, chosen, self.choices)
        return self.end(rows, weights)


@pytest.mark.parametrize(
    "end",
    [
        lambda rows, _: rows.amax(1),
        lambda rows, weights: torch.einsum("tai,ta->ti", rows.flip(1), weights),
        lambda rows, weights: torch.einsum("tai,ta->ti", rows, weights) + rows.sum(1),
        lambda rows, weights: torch.einsum("tai,ti->ta", rows, rows[:, 0] + weights[:, :1]),
        lambda rows, weights: torch.einsum("tai,ta->ti", rows * weights.unsqueeze(2), weights),
    ],
    ids=["largest", "reversed", "read twice", "over columns", "weights twice"],
)
def test_others_are_left(end: Callable[[Tensor, Tensor], Tensor]) -> None:
    assert found(Other(end)) is None


def test_an_expert_may_be_chosen_twice() -> None:
    assert found(PairedGiven(biased=False)) is None


def test_one_token_has_no_order() -> None:
    assert found(PairedMixture(biased=False), tokens=1) is None
