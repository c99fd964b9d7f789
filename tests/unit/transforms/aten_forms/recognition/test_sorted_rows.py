"""Rows sorted by expert: which sums over the experts of each token are recognized, and which are not."""

from __future__ import annotations

import pytest
from torch import Tensor

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.frontend import import_program
from spyre_mlir.text.parser import SpyreParser
from spyre_mlir.transforms.aten_forms.recognition.sorted_rows import SortedRows, sorted_rows
from spyre_mlir.universe import make_context
from tests.unit.transforms.aten_forms.mixtures import Given, Mixture, inputs


def found_in(text: str) -> list[SortedRows]:
    module = SpyreParser(make_context(), text).parse_module()
    sums = (sorted_rows(op) for op in module.walk() if isinstance(op, AtenOp))
    return [found for found in sums if found is not None]


def text_of(model: Mixture, *given: Tensor) -> str:
    return str(import_program(model, given or inputs(model=model)).module)


@pytest.mark.parametrize(("choices", "has_bias"), [(2, True), (2, False), (1, True)])
def test_routing_and_rows(choices: int, has_bias: bool) -> None:
    model = Mixture(choices=choices)
    model.has_bias = has_bias
    (found,) = found_in(text_of(model))
    assert (found.routing.tokens, found.routing.choices, found.routing.experts) == (7, choices, 5)
    assert (len(found.tokens), len(found.pairs), len(found.experts)) == (1, 1, 2 * has_bias)
    assert sum(op.overload == "transformers::grouped_mm_fallback" for op in found.steps) == 2
    assert found.widest == 16


def test_tokens_in_two_dimensions() -> None:
    class Batches(Mixture):
        def forward(self, x: Tensor, scores: Tensor) -> Tensor:
            return super().forward(x.flatten(0, 1), scores.flatten(0, 1))

    (x, scores), model = inputs(6), Batches()
    (found,) = found_in(text_of(model, x.view(2, 3, 8), scores.view(2, 3, 5)))
    assert found.routing.rows == 12


def test_experts_that_may_repeat_are_left() -> None:
    assert found_in(text_of(Given())) == []


@pytest.mark.parametrize(
    ("known", "other"),
    [
        ("aten.counts = true", "aten.other = true"),  # put back in an order that is not known
        ("other = 2 : i64, rounding", "other = 3 : i64, rounding"),  # rows of other tokens
        ("bins = 5 : i64, max = 4", "bins = 5 : i64, max = 9"),  # other groups
        ("aten.sort(%view_1)", "aten.sort(%view_1) {descending = true}"),
        ("(%mul_1, %index_put)", "(%mul_1, %sort_1)"),  # put back by the order itself
        ("(%p_down_proj_bias, %sort)", "(%p_down_proj_bias, %view_1)"),  # parts of other experts
    ],
)
def test_other_sums_are_left(known: str, other: str) -> None:
    text = text_of(Mixture())
    assert known in text
    assert found_in(text.replace(known, other)) == []


def test_rows_that_are_read_elsewhere_are_left() -> None:
    text = text_of(Mixture())
    text = text.replace('{aten.name = "output"}', '{aten.name = "output"}, tensor<14x8xf32> {aten.name = "read"}')
    text = text.replace("return %sum : tensor<7x8xf32>", "return %sum, %mul : tensor<7x8xf32>, tensor<14x8xf32>")
    assert found_in(text) == []
