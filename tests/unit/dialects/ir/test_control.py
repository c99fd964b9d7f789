"""Control flow names functions of the module that fit it."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import TensorType, f32
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.dialects.ir.control import CondOp, ControlOp, ForLoopOp, with_types
from spyre_mlir.machine.levels.run import run_function
from spyre_mlir.text.render import module_text, parse_module, verify_module
from spyre_mlir.universe import make_context

FUNCTIONS = """
  func.func private @go(%i: tensor<2xf32>, %n: tensor<i1>) -> tensor<i1> {
    func.return %n : tensor<i1>
  }
  func.func private @step(%i: tensor<2xf32>, %n: tensor<i1>) -> tensor<2xf32> {
    %0 = aten.neg(%i) : (tensor<2xf32>) -> tensor<2xf32>
    func.return %0 : tensor<2xf32>
  }
  func.func private @same(%i: tensor<2xf32>, %n: tensor<i1>) -> tensor<2xf32> {
    func.return %i : tensor<2xf32>
  }
"""
COND = "%0 = control.cond %n then @step else @same(%x, %n) : tensor<i1>, (tensor<2xf32>, tensor<i1>) -> tensor<2xf32>"
LOOP = "%0 = control.while_loop @go do @step(%x, %n) : (tensor<2xf32>, tensor<i1>) -> tensor<2xf32>"
SUMS = """builtin.module {
  func.func @main(%h: tensor<2xf32>, %x: tensor<3x2xf32>, %w: tensor<2xf32>) -> (tensor<2xf32>, tensor<3x2xf32>) {
    %0, %1 = control.for_loop @add trips 3 carrying 1 slicing 1 (%h, %x, %w) :
      (tensor<2xf32>, tensor<3x2xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<3x2xf32>)
    func.return %0, %1 : tensor<2xf32>, tensor<3x2xf32>
  }
  func.func private @add(%c: tensor<2xf32>, %e: tensor<1x2xf32>, %w: tensor<2xf32>) ->
      (tensor<2xf32>, tensor<1x2xf32>) {
    %0 = aten.squeeze.dim(%e) {dim = 0 : i64} : (tensor<1x2xf32>) -> tensor<2xf32>
    %1 = aten.mul.Tensor(%c, %w) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %2 = aten.add.Tensor(%1, %0) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %3 = aten.unsqueeze(%c) {dim = 0 : i64} : (tensor<2xf32>) -> tensor<1x2xf32>
    func.return %2, %3 : tensor<2xf32>, tensor<1x2xf32>
  }
}
"""


def module(op: str) -> str:
    return f"""builtin.module {{
  func.func @main(%x: tensor<2xf32>, %n: tensor<i1>) -> tensor<2xf32> {{
    {op}
    func.return %0 : tensor<2xf32>
  }}{FUNCTIONS}}}"""


@pytest.mark.parametrize("op", [COND, LOOP])
def test_text_reads_back(op: str) -> None:
    parsed = parse_module(module(op), make_context())
    verify_module(parsed)
    assert op in module_text(parsed)


def test_one_of_two_functions_runs() -> None:
    parsed = parse_module(module(COND), make_context())
    (negated,) = run_function(parsed, [[1.0, 2.0], True])
    (same,) = run_function(parsed, [[1.0, 2.0], False])
    assert negated.tolist() == [-1.0, -2.0]
    assert same.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("op", "message"),
    [
        (COND.replace("@same", "@other"), "calls @other, which is not in the module"),
        (COND.replace("@same", "@go"), r"@go gives \(tensor<i1>\), control.cond expects \(tensor<2xf32>\)"),
        (
            COND.replace("%n then", "%x then").replace(": tensor<i1>,", ": tensor<2xf32>,"),
            "the predicate of control.cond is tensor<2xf32>, expected tensor<i1>",
        ),
        (LOOP.replace("@go", "@same"), "what @same gives is tensor<2xf32>, expected tensor<i1>"),
        (
            "%0 = control.while_loop @go do @step(%n, %x) : (tensor<i1>, tensor<2xf32>) -> tensor<2xf32>",
            r"begins with \(tensor<i1>\) and gives \(tensor<2xf32>\)",
        ),
    ],
)
def test_functions_that_do_not_fit(op: str, message: str) -> None:
    with pytest.raises(VerifyException, match=message):
        verify_module(parse_module(module(op), make_context()))


@pytest.mark.parametrize("backwards", [False, True])
def test_a_loop_calls_its_body_with_entries(backwards: bool) -> None:
    """Numbers by hand: each trip doubles what it carries and adds its entry, and gives what it began with."""
    text = SUMS.replace("slicing 1 (", "slicing 1 backwards (") if backwards else SUMS
    parsed = parse_module(text, make_context())
    verify_module(parsed)
    assert module_text(parse_module(module_text(parsed), make_context())) == module_text(parsed)
    last, rows = run_function(parsed, [[1.0, 0.0], [[1.0, 0.0], [2.0, 0.0], [4.0, 1.0]], [2.0, 2.0]])
    if backwards:
        assert last.tolist() == [(((1 * 2 + 4) * 2 + 2) * 2 + 1), 4]
        assert rows.tolist() == [[14, 2], [6, 1], [1, 0]]
    else:
        assert last.tolist() == [(((1 * 2 + 1) * 2 + 2) * 2 + 4), 1]
        assert rows.tolist() == [[1, 0], [3, 0], [8, 0]]


def test_inputs_that_vary_come_first() -> None:
    parsed = parse_module(SUMS, make_context())
    (op,) = (o for o in parsed.walk() if isinstance(o, ForLoopOp))
    assert (op.carried_inputs, op.varying_inputs) == (1, 2)
    for text, carried in ((LOOP, 1), (COND, 0)):
        other = next(o for o in parse_module(module(text), make_context()).walk() if isinstance(o, ControlOp))
        assert (other.carried_inputs, other.varying_inputs) == (carried, carried)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("trips 3", "trips 0", "makes 0 trips, carries 1 and slices 1 of 3 inputs, and gives 2 results"),
        ("slicing 1", "slicing 3", "makes 3 trips, carries 1 and slices 3 of 3 inputs"),
        ("trips 3", "trips 4", "a loop of 4 trips takes or gives tensor<3x2xf32>, expected one entry per trip"),
        (
            "(%h, %x, %w) :\n      (tensor<2xf32>",
            "(%x, %x, %w) :\n      (tensor<3x2xf32>",
            r"begins with \(tensor<3x2xf32>\) and ends",
        ),
        ("@add trips", "@main trips", "@main takes"),
    ],
)
def test_loops_that_do_not_fit(old: str, new: str, message: str) -> None:
    with pytest.raises(VerifyException, match=message):
        verify_module(parse_module(SUMS.replace(old, new, 1), make_context()))


def test_an_op_with_other_types_stands_where_it_stood() -> None:
    """The predicate and the users stay."""
    parsed = parse_module(module(COND), make_context())
    op = next(op for op in parsed.walk() if isinstance(op, CondOp))
    predicate, (user,) = op.predicate, (use.operation for use in op.outputs[0].uses)
    wide = TensorType(f32, [3])
    made = with_types(op, list(op.inputs)[1:], [wide])
    assert isinstance(made, CondOp)
    assert (made.predicate, list(made.inputs)) == (predicate, [predicate])
    assert user.operands[0] is made.outputs[0]
    assert made.outputs[0].type == wide
