"""Calls that draw are neither merged nor dropped; others are."""

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.traits import is_side_effect_free, is_speculatable
from xdsl.transforms.common_subexpression_elimination import CommonSubexpressionElimination
from xdsl.transforms.dead_code_elimination import DeadCodeElimination

from spyre_mlir.dialects.aten import CallOp
from spyre_mlir.dialects.ir.call_effects import draws_numbers, runs_once
from spyre_mlir.text.render import parse_module
from spyre_mlir.universe import make_context


def program(callee: str) -> ModuleOp:
    call = f'aten.call "{callee}"() {{size = array<i64: 4>}} : () -> tensor<4xf32>'
    text = f"func.func @main() -> (tensor<4xf32>, tensor<4xf32>) {{\n %a = {call}\n %b = {call}\n %c = {call}\n"
    return parse_module(text + " func.return %a, %b : tensor<4xf32>, tensor<4xf32>\n}", make_context())


def calls(module: ModuleOp) -> list[CallOp]:
    return [op for op in module.walk() if isinstance(op, CallOp)]


@pytest.mark.parametrize(("callee", "left"), [("aten.rand", 3), ("_c10d_functional::all_reduce", 3), ("aten.ones", 1)])
def test_equal_draws_stay_two(callee: str, left: int) -> None:
    module = program(callee)
    CommonSubexpressionElimination().apply(make_context(), module)
    assert len(calls(module)) == left


@pytest.mark.parametrize(("callee", "left"), [("aten.rand", 3), ("aten.ones", 2)])
def test_unread_draws_stay(callee: str, left: int) -> None:
    module = program(callee)
    DeadCodeElimination().apply(make_context(), module)
    assert len(calls(module)) == left


def test_a_program_that_draws() -> None:
    assert draws_numbers(program("random::uniform"))
    assert not draws_numbers(program("aten.ones"))
    (call, *_) = calls(program("aten.rand"))
    assert not is_side_effect_free(call)
    assert not is_speculatable(call)


@pytest.mark.parametrize(
    ("callee", "once"), [("aten.rand", True), ("_c10d_functional::all_reduce", True), ("aten.ones", False)]
)
def test_a_program_that_cannot_be_repeated(callee: str, once: bool) -> None:
    assert runs_once(program(callee)) is once


@pytest.mark.parametrize("training", ["{training = true}", "{training = false}", ""])
def test_a_unit_draws_in_training_only(training: str) -> None:
    kind = "tensor<4xf32>"
    call = f"aten.rrelu_with_noise_functional(%x, %n) {training} : ({kind}, {kind}) -> ({kind}, {kind})"
    text = f"func.func @main(%x: {kind}, %n: {kind}) -> {kind} {{\n %a, %b = {call}\n func.return %a : {kind}\n}}"
    assert draws_numbers(parse_module(text, make_context())) is ("true" in training)
