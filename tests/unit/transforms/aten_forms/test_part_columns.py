"""Pass `part-columns`: weights are taken apart at load, and the numbers are those of eager."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import spyre_mlir
from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.spyre.kernel import RestickifyOp, ToDeviceOp
from spyre_mlir.dialects.tensors import shape_of
from spyre_mlir.frontend import import_program
from spyre_mlir.pipeline import lower
from spyre_mlir.transforms.aten_forms.part_columns import PartColumnsPass
from spyre_mlir.universe import make_context
from tests.unit.transforms.aten_forms.interleaved import (
    Alternating,
    AlternatingExperts,
    ByHead,
    Halves,
    OfHeads,
    Overlapping,
    Rows,
    Shared,
    Sums,
    Turned,
    rows,
)
from tests.unit.transforms.aten_forms.mixtures import inputs

_PRODUCTS = ("linear", "transformers::grouped_mm_fallback")


def given(model: nn.Module) -> tuple[Tensor, ...]:
    """Inputs of a model, in half precision."""
    if isinstance(model, AlternatingExperts):
        x, scores = inputs(64)
        return torch.cat([x] * 8, -1).half(), scores[:, :3].half()
    return (rows(),)


def weights(model: nn.Module, *args: Tensor) -> list[tuple[int, ...]]:
    """The shapes of the weights of all products after the pass."""
    module = import_program(model, args).module
    PartColumnsPass().apply(make_context(), module)
    module.verify()
    ops = [op for op in module.walk() if isinstance(op, AtenOp) and op.overload in _PRODUCTS]
    return [shape_of(op.operands[1]) for op in ops]


@pytest.mark.parametrize(
    ("model", "shapes"),
    [
        (ByHead(), [(128, 64)] * 3),
        (Turned(), [(128, 64)] * 3),
        (Alternating(), [(128, 64)] * 2),
        (AlternatingExperts().half(), [(3, 64, 64)] * 3),
    ],
    ids=lambda value: type(value).__name__,
)
def test_each_reader_has_a_product(model: nn.Module, shapes: list[tuple[int, ...]]) -> None:
    assert weights(model, *given(model)) == shapes


def test_slices_of_heads_stay() -> None:
    """They start at whole sticks of one result."""
    assert weights(OfHeads(), rows()) == [(384, 64)]


@pytest.mark.parametrize("model", [Sums(), Halves(), Rows(), Overlapping(), Shared()], ids=lambda m: type(m).__name__)
def test_a_product_stays_whole(model: nn.Module) -> None:
    assert set(weights(model, rows())) == {(256, 64)}


def test_few_rows_stay_whole() -> None:
    """The weight is what takes time there."""
    assert weights(Alternating(), rows(63)) == [(256, 64)]


@pytest.mark.parametrize("model", [ByHead(), Turned(), Alternating()], ids=lambda m: type(m).__name__)
def test_nothing_is_laid_out_again(model: nn.Module) -> None:
    """And the weight goes to the device in parts alone."""
    module = lower(import_program(model, given(model)).module, make_context(), until="spyre.kernel").modules
    ops = list(module["spyre.kernel"].walk())
    assert not any(isinstance(op, RestickifyOp) for op in ops)
    sent = [shape_of(op.source) for op in ops if isinstance(op, ToDeviceOp) and len(shape_of(op.source)) == 2]
    assert len(sent) == len(weights(model, *given(model)))


@pytest.mark.parametrize(
    "model", [ByHead(), Turned(), Alternating(), AlternatingExperts().half()], ids=lambda m: type(m).__name__
)
def test_every_level_agrees_with_eager(model: nn.Module) -> None:
    args = given(model)
    compiled = spyre_mlir.compile(model, args)
    assert (outcome := compiled.verify(*args)), str(outcome)
