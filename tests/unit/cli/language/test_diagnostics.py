"""Errors of a text with the range that an editor marks."""

from __future__ import annotations

import pytest

from spyre_mlir.cli.language.diagnostics import Diagnosis, problems_of
from spyre_mlir.universe import make_context

GOOD = """\
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = aten.neg(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
"""
SURPLUS = "  %0 = aten.neg(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>"
BAD = f"func.func @f(%x: tensor<4xf32>) {{\n{SURPLUS}\n  func.return\n}}\n"


def test_a_program_without_errors() -> None:
    assert problems_of(GOOD, make_context()) == []
    assert problems_of("\n// a comment\n", make_context()) == []


def test_the_op_that_does_not_verify_is_marked_from_its_beginning() -> None:
    message = "1 operands more than the schema of aten.neg takes"
    (problem,) = problems_of(BAD, make_context())
    assert problem == Diagnosis(1, 2, len(SURPLUS), problem.message)
    assert message in problem.message


def test_the_token_that_cannot_be_read_is_marked() -> None:
    (problem,) = problems_of(GOOD.replace("(%x) :", "(%y) :"), make_context())
    assert (problem.line, problem.start, problem.end) == (1, 16, 18)
    assert problem.message == "values used but not defined: [%y]"
    (problem,) = problems_of(GOOD.replace("(%x) :", "(%x :"), make_context())
    assert (problem.line, problem.start, problem.end) == (1, 19, 20)


def test_every_piece_has_its_error() -> None:
    text = f"{GOOD}// -----\n{BAD}// -----\n{GOOD}// -----\nfunc.func @g( {{\n"
    assert [problem.line for problem in problems_of(text, make_context())] == [6, 15]


def test_the_end_of_a_text_can_be_marked() -> None:
    (problem,) = problems_of("func.func @f() {", make_context())
    assert problem.line == 0
    assert problem.end > problem.start


@pytest.mark.parametrize("where", ['loc("model.py":99:1)', 'loc("model.py":2:1)', "loc(unknown)"])
def test_an_op_with_a_place_in_a_model_has_none_in_the_text(where: str) -> None:
    text = BAD.replace(SURPLUS, f"{SURPLUS} {where}")
    (problem,) = problems_of(text, make_context())
    assert (problem.line, problem.start) == (0, 0)
