"""Ops that the host runs: marks, host steps, and copies of what only moves elements."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, StringAttr, UnitAttr

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.aten_arguments import said_arguments
from spyre_mlir.dialects.ir.functions import functions
from spyre_mlir.transforms.utils.host_support import ReadOnHost, is_marked, loop_step, mark
from spyre_mlir.transforms.utils.patterns import apply_once
from tests.unit.transforms.levels import ops, passed

X = "tensor<4x8xf32>"
J1 = 'aten.call "aten.special_bessel_j1"({0}) {{self = #aten.operands<1>}}{1} : (tensor<{2}xf32>) -> tensor<{2}xf32>'
MARKED = ' host because "no entry"'


def stayed(body: str) -> list[str]:
    """The ops behind copying: their overloads, those of the host with a star."""
    module = passed(f"func.func @main(%x: {X}, %y: {X}) {{\n{body}\nfunc.return\n}}")
    apply_once(ReadOnHost(), functions(module)[0].body)
    module.verify()
    return [op.overload + "*" * is_marked(op) for op in ops(module, AtenOp)]


def test_marks_have_a_reason_or_follow_others() -> None:
    op = ops(passed(f"func.func @main(%x: {X}) {{\n%0 = aten.exp(%x) : ({X}) -> {X}\nfunc.return\n}}"), AtenOp)[0]
    assert not is_marked(op)
    mark(op, "no entry")
    assert is_marked(op) and op.reason == StringAttr("no entry")
    mark(op, None)
    assert is_marked(op) and op.host == UnitAttr() and op.reason is None


def step(call: str) -> tuple[ModuleOp, AtenOp]:
    module = passed(f"func.func @main(%x: {X}, %y: {X}) {{\n%0 = aten.{call}\nfunc.return\n}}")
    return module, ops(module, AtenOp)[0]


def test_a_host_step_has_the_call_and_the_new_operands() -> None:
    _, op = step(f'add.Tensor(%x, %y) {{alpha = 2.0 : f64}} host because "why" : ({X}, {X}) -> {X}')
    new = passed(f"func.func @main(%x: {X}, %y: {X}) {{\nfunc.return\n}}")
    operands = list(functions(new)[0].body.block.args)
    made = loop_step(op, operands)
    assert made.callee.data == "aten.add.Tensor" and made.reason is not None and made.reason.data == "why"
    assert list(made.operands) == operands and [r.type for r in made.results] == [r.type for r in op.results]
    assert str(said_arguments(made.given)["self"]) == str(said_arguments(made.given)["other"]) == "#aten.operands<1>"
    assert not made.is_wide


def test_a_host_step_without_reason_that_is_not_rounded() -> None:
    given = "{self = #aten.operands<1>} wide host"
    _, op = step(f'call "acme::thing"(%x) {given} : ({X}) -> {X}')
    made = loop_step(op, list(op.operands))
    assert made.callee.data == "acme::thing" and made.reason is None and made.is_wide


def test_views_of_what_the_host_has_are_copied_for_it() -> None:
    view = f"%0 = aten.t(%x) : ({X}) -> tensor<8x4xf32>\n"
    assert stayed(view + "%1 = " + J1.format("%0", MARKED, "8x4")) == ["t", "t*", "special_bessel_j1*"]


def test_chains_are_copied_once() -> None:
    body = f"""%0 = aten.t(%x) : ({X}) -> tensor<8x4xf32>
    %1 = aten.t(%0) : (tensor<8x4xf32>) -> {X}
    %2 = {J1.format("%1", MARKED, "4x8")}
    %3 = {J1.format("%1", MARKED, "4x8")}"""
    assert stayed(body) == ["t", "t", "t*", "t*", "special_bessel_j1*", "special_bessel_j1*"]


def test_what_the_device_computes_stays_there() -> None:
    for source in ("exp", "neg"):
        body = f"""%0 = aten.{source}(%x) : ({X}) -> {X}
        %1 = aten.t(%0) : ({X}) -> tensor<8x4xf32>
        %2 = {J1.format("%1", MARKED, "8x4")}"""
        assert stayed(body) == [source, "t", "special_bessel_j1*"]


def test_results_of_the_host_are_there() -> None:
    body = f"""%0 = {J1.format("%x", MARKED, "4x8")}
    %1 = aten.t(%0) : ({X}) -> tensor<8x4xf32>
    %2 = {J1.format("%1", MARKED, "8x4")}"""
    assert stayed(body) == ["special_bessel_j1*", "t", "t*", "special_bessel_j1*"]


def test_arguments_and_ops_of_the_device_need_no_copies() -> None:
    assert stayed("%0 = " + J1.format("%x", MARKED, "4x8")) == ["special_bessel_j1*"]
    device = "%0 = aten.t(%x) : (tensor<4x8xf32>) -> tensor<8x4xf32>\n"
    assert stayed(device + "%1 = aten.exp(%0) : (tensor<8x4xf32>) -> tensor<8x4xf32>") == ["t", "exp"]
    # What has no entry is no view.
    body = f"%0 = {J1.format('%x', '', '4x8')}\n%1 = {J1.format('%0', MARKED, '4x8')}"
    assert stayed(body) == ["special_bessel_j1", "special_bessel_j1*"]


def test_known_numbers_are_made_for_the_host_too() -> None:
    body = f"%0 = aten.full() {{size = array<i64: 4, 8>, fill_value = 1.0 : f64}} : () -> {X}\n"
    assert stayed(body + "%1 = " + J1.format("%0", MARKED, "4x8")) == ["full", "full*", "special_bessel_j1*"]


def test_copies_stand_before_their_reader_and_keep_their_location() -> None:
    lines = f"%0 = aten.t(%x) : ({X}) -> tensor<8x4xf32>\n%1 = {J1.format('%0', MARKED, '8x4')}\n"
    text = f"func.func @main(%x: {X}) {{\n{lines}func.return\n}}"
    module = passed(text)
    apply_once(ReadOnHost(), functions(module)[0].body)
    original, copy, reader = ops(module, AtenOp)
    assert copy.location == original.location and reader.operands[0] is copy.results[0]
    assert copy.on_host and copy.reason is None and not list(original.results[0].uses)
