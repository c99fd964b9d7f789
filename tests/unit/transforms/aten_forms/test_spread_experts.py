"""Pass `spread-experts`: all tokens meet every expert, and the numbers are those of eager."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import spyre_mlir
from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.aten_arguments import TERMS
from spyre_mlir.dialects.spyre.kernel import ComputeOp
from spyre_mlir.frontend import import_program
from spyre_mlir.machine.levels.run import run_function
from spyre_mlir.pipeline import lower
from spyre_mlir.transforms.aten_forms.spread_experts import SpreadExpertsPass
from spyre_mlir.universe import make_context
from tests.unit.transforms.aten_forms.mixtures import Mixture, inputs
from tests.unit.transforms.aten_forms.paired_mixtures import PairedMixture, paired_inputs


def test_products_have_a_row_for_each_token() -> None:
    module = import_program(Mixture(), inputs()).module
    SpreadExpertsPass().apply(make_context(), module)
    module.verify()
    ops = [op for op in module.walk() if isinstance(op, AtenOp)]
    products = [str(op.results[0].type) for op in ops if op.overload == "bmm"]
    assert products == ["tensor<5x7x16xf32>", "tensor<5x7x8xf32>"]
    assert not {"sort", "histc", "transformers::grouped_mm_fallback"} & {op.overload for op in ops}


def spread(model: Mixture, *given: torch.Tensor) -> np.ndarray:
    """What the aten level gives after the pass."""
    program = import_program(model, given)
    SpreadExpertsPass().apply(make_context(), program.module)
    read = iter(given)
    arrays = [(next(read) if a.kind == "input" else program.values[a.name]).numpy() for a in program.arguments]
    (got,) = run_function(program.module, arrays)
    return got


def test_kernels_of_the_sum_know_how_many_terms_it_has() -> None:
    """So many of the numbers that a token adds up may be other than 0."""
    model, given = Mixture(choices=3).half(), tuple(x.half() for x in inputs())
    kernels = lower(import_program(model, given).module, make_context()).modules["spyre.kernel"]
    sums = [op for op in kernels.walk() if isinstance(op, ComputeOp) and TERMS in op.attributes]
    assert {str(op.attributes[TERMS]) for op in sums} == {"3 : i64"}
    assert [op.function_name for op in sums].count("sum") == 1


@pytest.mark.parametrize("choices", [1, 2, 5])
@pytest.mark.parametrize("most", [None, 7 * 16 * 4])
def test_numbers_are_eagers(choices: int, most: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """All experts at once, or one at a time."""
    if most is not None:
        monkeypatch.setattr("spyre_mlir.ops.composed.nn.grouped_mm._MOST_PRODUCTS", most)
    model, given = Mixture(choices=choices), inputs()
    np.testing.assert_allclose(spread(model, *given), model(*given).numpy(), rtol=0, atol=1e-6)


def test_an_infinity_of_an_expert_that_was_not_chosen_is_dropped() -> None:
    model, (x, scores) = Mixture(), inputs()
    model.down_proj_bias[3] = float("inf")
    scores[:, 3] = -1.0
    np.testing.assert_allclose(spread(model, x, scores), model(x, scores).numpy(), rtol=0, atol=1e-6)


def test_every_level() -> None:
    model, given = Mixture().half(), inputs()
    halves = tuple(x.half() for x in given)
    compiled = spyre_mlir.compile(model, halves)
    assert compiled.verify(*halves)
    wanted = model(*halves)
    assert (compiled(*halves) - wanted).abs().max() < 0.01 * wanted.abs().max()


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("most", [None, 7 * 16 * 4])
def test_rows_in_the_order_of_tokens(biased: bool, most: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """All experts at once, or one at a time; what a token did not choose is dropped, though it is infinite."""
    if most is not None:
        monkeypatch.setattr("spyre_mlir.ops.composed.nn.grouped_mm._MOST_PRODUCTS", most)
    model, (x, scores) = PairedMixture(biased=biased), paired_inputs()
    model.w2[3] = float("inf")
    scores[:, 3] = -1.0
    module = import_program(model, (x, scores)).module
    SpreadExpertsPass().apply(make_context(), module)
    module.verify()
    assert "moe::moe_mm" not in {op.overload for op in module.walk() if isinstance(op, AtenOp)}
    np.testing.assert_allclose(spread(model, x, scores), model(x, scores).numpy(), rtol=0, atol=1e-6)


def test_rows_in_the_order_of_tokens_at_every_level() -> None:
    model, given = PairedMixture(biased=True).half(), tuple(x.half() for x in paired_inputs())
    compiled = spyre_mlir.compile(model, given)
    assert compiled.verify(*given)
    wanted = model(*given)
    assert (compiled(*given) - wanted).abs().max() < 0.01 * wanted.abs().max()
