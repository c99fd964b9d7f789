"""Layouts that hints ask for: followed from the model to the kernels, or refused with the legal ones."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import spyre_mlir
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.dialects.spyre.hints import HintError
from spyre_mlir.dialects.spyre.kernel import KernelOp, RestickifyOp, device_tensor
from spyre_mlir.dialects.spyre.layout_choices import LayoutChoice, LayoutError, layout_said
from spyre_mlir.hw.sticks import StickLayout
from tests.unit.transforms.levels import ops, passed

CHOOSE, CONVERT = "choose-layouts", "convert-spyre-loop-to-spyre-kernel"
X = torch.randn(64, 128, generator=torch.Generator().manual_seed(0)).half()


class Hinted(nn.Module):
    """One operation with a hint between two without."""

    def __init__(self, operation: Any, **said: Any) -> None:
        super().__init__()
        self.operation, self.said = operation, said

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.neg(x)
        with spyre_mlir.hint(**self.said):
            x = self.operation(x)
        return torch.abs(x)


def compiled(model: nn.Module, *inputs: torch.Tensor) -> CompiledModel:
    made = spyre_mlir.compile(model, inputs or (X,), cache=False)
    assert isinstance(made, CompiledModel)
    return made


def result(program: CompiledModel, function: str) -> StickLayout:
    """How the last kernel with a function leaves its result."""
    found = [op for op in ops(program._lowered.modules["spyre.kernel"], KernelOp) if op.function_name == function]
    return device_tensor(found[-1].output).layout


@pytest.mark.parametrize(
    ("layout", "stick", "order"),
    [
        ({"stick": 0}, 0, (0, 1)),
        ({"stick": -1, "order": [0, 1]}, 1, (0, 1)),
        ({"lanes": "d0"}, 0, (0, 1)),
        ({"stick": "unit"}, -1, None),
    ],
)
def test_a_layout_is_followed_and_what_it_asks_for_is_inserted(
    layout: dict[str, Any], stick: int, order: tuple[int, ...] | None
) -> None:
    free, program = compiled(Hinted(torch.relu, place="hbm")), compiled(Hinted(torch.relu, layout=layout))
    assert (result(free, "relufwd").stick, result(free, "relufwd").order) == (1, (1, 0))
    found = result(program, "relufwd")
    assert found.stick == stick and order in (None, found.order)
    inserted = [len(ops(p._lowered.modules["spyre.kernel"], RestickifyOp)) for p in (free, program)]
    assert inserted[0] == 0 and (inserted[1] > 0) == (stick != 1)
    torch.testing.assert_close(program(X), torch.relu(-X), rtol=2e-3, atol=2e-3)


def test_torch_compile_follows_and_refuses_layouts() -> None:
    model = Hinted(torch.relu, layout={"stick": 0})
    torch.testing.assert_close(torch.compile(model, backend="spyre")(X), model(X), rtol=2e-3, atol=2e-3)
    refused = Hinted(lambda x: x @ x.T, layout={"stick": 0})
    with pytest.raises(Exception, match="a product has its columns in the lanes"):
        torch.compile(refused, backend="spyre")(X)


def test_only_the_result_of_an_operation_of_several_kernels_is_concerned() -> None:
    program = compiled(Hinted(lambda x: torch.softmax(x, -1), layout={"stick": 0}))
    found = [
        (op.function_name, device_tensor(op.output).layout.stick)
        for op in ops(program._lowered.modules["spyre.kernel"], KernelOp)
    ]
    assert ("exp", 1) in found[:-2]
    at = [stick for name, stick in found if name not in ("exp", "ReStickifyOpHBM", "neg", "abs")]
    assert at[-1] == 0
    torch.testing.assert_close(program(X), torch.softmax(-X, -1), rtol=2e-3, atol=2e-3)


def test_a_tensor_that_is_filled_part_by_part_lies_as_its_hint_says() -> None:
    program = compiled(Hinted(lambda x: torch.cat([x, x]), layout={"stick": 0}))
    module = program._lowered.modules["spyre.kernel"]
    (read,) = [op for op in ops(module, KernelOp) if op.function_name == "abs"]
    assert any(
        device_tensor(op.output).layout.stick == 0 and device_tensor(op.output).shape == (128, 128)
        for op in ops(module, KernelOp)
    )
    assert device_tensor(read.output).shape == (128, 128)
    torch.testing.assert_close(program(X), torch.cat([X, X]).abs(), rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize(
    ("operation", "layout", "message", "hint"),
    [
        (
            lambda x: x @ x.T,
            {"stick": 0},
            "cannot be stick 0: a product has its columns in the lanes",
            "lanes n, stick 1",
        ),
        (torch.relu, {"lanes": "q"}, "cannot be lanes q", "lanes d1, stick 1; lanes d0, stick 0; lanes none"),
        (torch.relu, {"order": [0]}, "does not list each dimension", "for example stick"),
        (
            lambda x: x.float(),
            {"stick": 0},
            "no tensor with a layout of its own",
            "take the hint about its layout away",
        ),
    ],
)
def test_a_layout_that_the_machine_does_not_have_is_refused_with_the_legal_ones(
    operation: Any, layout: dict[str, Any], message: str, hint: str
) -> None:
    with pytest.raises(LayoutError, match=message) as refused:
        compiled(Hinted(operation, layout=layout))
    assert refused.value.hint is not None and hint in refused.value.hint
    assert refused.value.where is not None and "test_hinted_layouts.py" in refused.value.where


T = "tensor<64x128xf16>"


def relu(hint: str, said: str = "") -> str:
    return f"""func.func @main(%x: {T}) -> {T} {{
      %0 = spyre.loop.nest [m = 64, n = 128] ins(%x[m, n] : {T}) -> [m, n] : {T}
        attributes {{spyre.hint = {{{hint}}}{said and f", spyre.layout = #spyre.layout<{said}>"}}} {{
      ^bb0(%e: f16):
        %r = spyre.loop.apply "relu"(%e) : (f16) -> f16
        spyre.loop.yield %r : f16
      }}
      func.return %0 : {T}
    }}"""


HINT = "layout = #spyre.layout<stick 0>"


def test_the_text_shows_a_hinted_layout_and_may_complete_it() -> None:
    for said, order in (("", (0, 1)), ("order [1, 0]", (1, 0)), ("lanes m, stick 0", (0, 1))):
        made = passed(relu(HINT, said), CHOOSE)
        (nest,) = [op for op in made.walk() if op.name == "spyre.loop.nest"]
        assert layout_said(nest) == LayoutChoice("m", 0, order)
        (op,) = ops(passed(relu(HINT, said), CHOOSE, CONVERT), KernelOp)
        assert device_tensor(op.output).layout.order == order


@pytest.mark.parametrize("name", [CHOOSE, CONVERT])
def test_a_text_that_contradicts_a_hint_is_refused(name: str) -> None:
    with pytest.raises(HintError, match="a hint says stick 0, and the program says stick 1") as refused:
        passed(relu(HINT, "stick 1"), name)
    assert refused.value.hint == "take away one of them: the hint, or spyre.layout"
    assert refused.value.where is not None and refused.value.where.startswith("spyre.loop.nest at ")


def test_dimensions_of_a_result_that_is_made_in_another_shape_are_refused() -> None:
    with pytest.raises(HintError, match="of a result of 3 dimensions, which is made as 64x128") as refused:
        passed(relu(f"{HINT}, rank = 3 : i64"), CHOOSE)
    assert refused.value.hint is not None and "of m, n" in refused.value.hint
    assert passed(relu("layout = #spyre.layout<lanes m>, rank = 3 : i64"), CHOOSE, CONVERT)
