"""Pass `fold-sinks`: a sink is a term of the sum of a softmax, and the numbers are those of eager."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import spyre_mlir
from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.frontend import import_program
from spyre_mlir.transforms.aten_forms.fold_sinks import FoldSinksPass
from spyre_mlir.universe import make_context
from tests.functions import FunctionModel

Function = Callable[[Tensor, Tensor], Tensor]
KEYS = 64


def joined(scores: Tensor, sink: Tensor) -> Tensor:
    return torch.cat([scores, sink.view(1, -1, 1, 1).expand(*scores.shape[:-1], 1)], -1)


def plain(scores: Tensor, sink: Tensor) -> Tensor:
    return joined(scores, sink).softmax(-1)[..., :-1]


def shifted(scores: Tensor, sink: Tensor) -> Tensor:
    """As GPT-OSS writes it."""
    both = joined(scores, sink)
    return (both - both.max(dim=-1, keepdim=True).values).softmax(-1)[..., :-1]


def given() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    return 4 * torch.randn(1, 3, 8, KEYS, generator=generator).half(), torch.tensor([-3.0, 0.5, 9.0]).half()


def softmaxes(function: Function) -> list[str]:
    """The softmaxes after the pass."""
    module = import_program(FunctionModel(function), given()).module
    FoldSinksPass().apply(make_context(), module)
    module.verify()
    return [op.overload for op in module.walk() if isinstance(op, AtenOp) and "softmax" in op.overload]


@pytest.mark.parametrize("function", [plain, shifted])
def test_scores_have_no_column_more(function: Function) -> None:
    assert softmaxes(function) == ["spyre::softmax_beside"]


@pytest.mark.parametrize(
    "function",
    [
        lambda scores, sink: joined(scores, sink).softmax(-1)[..., 1:],
        lambda scores, sink: joined(scores, sink).softmax(-1)[..., :-2],
        lambda scores, sink: joined(scores, sink).softmax(-2)[..., :-1],
        lambda scores, sink: joined(scores, sink).softmax(-1)[..., :-1, :],
        lambda scores, sink: joined(joined(scores, sink), sink).softmax(-1)[..., :-2],
        lambda scores, sink: (p := joined(scores, sink).softmax(-1))[..., :-1] + p[..., -1:],
        lambda scores, sink: ((b := joined(scores, sink)) - b.min(dim=-1, keepdim=True).values).softmax(-1)[..., :-1],
        lambda scores, sink: ((b := joined(scores, sink)) - b.max(dim=-2, keepdim=True).values).softmax(-1)[..., :-1],
        lambda scores, sink: (b := joined(scores, sink)).softmax(-1)[..., :-1] + b.sum(-1, keepdim=True),
    ],
    ids=[
        "first column",
        "two columns",
        "over rows",
        "without the last row",
        "two sinks",
        "the sink's part is read",
        "less the smallest",
        "largest of a column",
        "scores are read",
    ],
)
def test_another_softmax_stays(function: Function) -> None:
    assert softmaxes(function) == ["softmax.int"]


@pytest.mark.parametrize("numerics", ["exact", "device"])
@pytest.mark.parametrize("function", [plain, shifted])
def test_every_level_agrees_with_eager(function: Function, numerics: str) -> None:
    """For a sink below all scores, among them, and above all."""
    compiled = spyre_mlir.compile(FunctionModel(function), given(), numerics=numerics)
    assert (outcome := compiled.verify(*given())), str(outcome)


def test_rows_that_are_masked_leave_all_to_the_sink() -> None:
    """Eager's zeros of minus infinity are zeros."""
    scores, sink = given()
    scores[0, :, 3] = -torch.inf
    compiled = spyre_mlir.compile(FunctionModel(shifted), (scores, sink), numerics="exact")
    assert torch.equal(compiled(scores, sink)[0, :, 3], torch.zeros(3, KEYS).half())
