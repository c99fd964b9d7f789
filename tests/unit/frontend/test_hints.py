"""`hint` in every way into the compiler: export, a saved file, symbols, torch.compile; nothing in eager mode."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch._higher_order_ops.map import map as loop_over
from torch._higher_order_ops.while_loop import while_loop
from torch.nn.attention.flex_attention import flex_attention

import spyre_mlir
from spyre_mlir.dialects.spyre.hints import HINT, Hint, HintError, hint_of
from spyre_mlir.dialects.spyre.layout_choices import LayoutChoice
from spyre_mlir.frontend import import_program
from spyre_mlir.frontend.hints import hint
from spyre_mlir.frontend.program.program import Program
from tests.functions import FunctionModel


class Hinted(nn.Module):
    """A product with a hint between functions without, and one hint inside of another."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(64, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.exp(x)
        with hint(division={0: 8}, place="lx"):
            y = self.linear(x)
            with hint(place="hbm"):
                y = torch.neg(y)
            y = torch.abs(y)
        with hint(layout={"stick": -2, "order": [0, 1]}):
            y = torch.sin(y)
        with hint(tile={-1: 1}):
            return torch.tanh(y)


def relu(x: torch.Tensor) -> torch.Tensor:
    with hint(division={0: 4}):
        return torch.relu(x)


def sliced(x: torch.Tensor) -> Any:
    return loop_over(lambda row: relu(row).sin(), x.view(2, 8, 64))


def looped(x: torch.Tensor) -> Any:
    return while_loop(lambda n, _: n < 3, lambda n, y: (n + 1, relu(y).sin()), (torch.tensor(0), x))


def branched(x: torch.Tensor) -> torch.Tensor:
    return torch.cond(x.sum() > 0, lambda y: relu(y).sin(), lambda y: y.sin(), (x,))


X = torch.randn(16, 64)
EXPECTED = {
    "exp": None,
    "linear": Hint({"0": 8}, "lx"),
    "neg": Hint(place="hbm"),
    "abs": Hint({"0": 8}, "lx"),
    "sin": Hint(layout=LayoutChoice(stick=0, order=(0, 1))),
    "tanh": Hint(tile={"-1": 1}),
}


def hints(program: Program) -> dict[str, Hint | None]:
    return {op.name.removeprefix("aten."): hint_of(op) for op in program.module.walk() if op.name.startswith("aten.")}


@pytest.mark.parametrize("strict", [False, True])
def test_hints_survive_export_and_a_saved_file(strict: bool, tmp_path: Path) -> None:
    exported = torch.export.export(Hinted(), (X,), strict=strict)
    assert hints(import_program(exported)) == EXPECTED
    torch.export.save(exported, tmp_path / "model.pt2")
    assert hints(import_program(tmp_path / "model.pt2")) == EXPECTED


def test_a_module_and_a_module_with_symbols() -> None:
    assert hints(import_program(Hinted(), (X,))) == EXPECTED
    made = spyre_mlir.compile(Hinted(), (X,), dynamic_shapes=({0: torch.export.Dim("rows", min=8)},), cache=False)
    assert isinstance(made, spyre_mlir.DynamicModel)
    text = made.specialize(**{name: 24 for name in ("rows", "s0", "s1", "s27", "s77") if name in made.symbols})
    assert text.mlir("aten").count(HINT) == 5


@pytest.mark.parametrize("given", [sliced, looped, branched])
def test_hints_in_bodies_and_branches_stay(given: Callable[[torch.Tensor], Any]) -> None:
    module = import_program(FunctionModel(given), (X,)).module
    marks = [(op.name, hint_of(op)) for op in module.walk() if op.name in ("aten.relu", "aten.sin")]
    assert marks and all(found == (Hint({"0": 4}) if name == "aten.relu" else None) for name, found in marks)


def test_what_a_rewritten_operator_consists_of_has_its_hint() -> None:
    def attended(q: torch.Tensor) -> Any:
        with hint(place="hbm"):
            return flex_attention(q, q, q, score_mod=lambda score, _b, _h, row, column: score + row - column)

    module = import_program(FunctionModel(attended), (torch.randn(1, 2, 16, 8),)).module
    products = [op for op in module.walk() if op.name in ("aten.matmul", "aten.bmm")]
    assert products and all(hint_of(op) == Hint(place="hbm") for op in products)


def test_torch_compile_keeps_hints(caplog: pytest.LogCaptureFixture) -> None:
    """The result of the product goes to the scratchpads, and can only if the hint came through Dynamo."""
    seen: list[Any] = []

    def backend(graph: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        seen.append({n.name: HINT in (n.meta.get("custom") or {}) for n in graph.graph.nodes if n.op != "placeholder"})
        return graph

    model = Hinted()
    compiled = torch.compile(model, backend=backend, fullgraph=True)
    torch.testing.assert_close(compiled(X), model(X))
    (marks,) = seen
    assert sum(marks.values()) >= 3 and not marks["x"]


def test_eager_mode_computes_the_same() -> None:
    model = Hinted()
    y = torch.tanh(torch.sin(torch.abs(torch.neg(model.linear(torch.exp(X))))))
    torch.testing.assert_close(model(X), y)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({}, "a hint says nothing"),
        ({"division": {}}, "a hint says nothing"),
        ({"place": "dram"}, "the place of a hint is lx or hbm"),
        ({"division": {0: 2.5}}, "the slices of 0 are a whole number"),
        ({"division": [4]}, "the division of a hint is slices by loop"),
        ({"tile": {}}, "a hint says nothing"),
        ({"tile": {0: "4"}}, "the trips over 0 are a whole number from 1 on, got '4'"),
        ({"layout": "rows"}, "the layout of a hint is a dictionary"),
        ({"layout": {"stick": 1.5}}, "a dimension of a layout is a number"),
    ],
)
def test_bad_hints_are_refused_where_they_are_made(said: Any, message: str) -> None:
    with pytest.raises(HintError, match=message) as refused:
        hint(**said)
    form = (
        'for example layout={"stick": 0}'
        if "layout" in said
        else 'for example hint(division={0: 4}) or hint(place="lx")'
    )
    assert form in str(refused.value.hint)


def test_a_layout_of_a_dimension_that_a_result_does_not_have_is_refused_at_its_line() -> None:
    class Rows(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            with hint(layout={"stick": 2}):
                return torch.exp(x)

    with pytest.raises(HintError, match="a layout names dimension 2, expected one from -2 to 1") as refused:
        import_program(Rows(), (X,))
    assert refused.value.where is not None and "test_hints.py:" in refused.value.where
