"""Errors of checks of sizes: what has made the sizes, and what is expected of them."""

from __future__ import annotations

import operator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.fx import Node

from spyre_mlir.frontend.data_sizes.failed_checks import failed_check
from tests.functions import FunctionModel

X = torch.ones(4, 3)


def program() -> Any:
    def rows(x: Tensor) -> Any:
        return x[x > 0], torch.nonzero(x)

    return torch.export.export(FunctionModel(rows), (X,)).graph


def sizes(graph: Any) -> list[Node]:
    """The sizes of both results."""
    (output,) = graph.find_nodes(op="output")
    with graph.inserting_before(output):
        return [graph.call_function(torch.ops.aten.sym_size.int, (node, 0)) for node in output.args[0]]


def check(graph: Any, compare: Any, *sides: Any, negated: bool = False) -> Node:
    (output,) = graph.find_nodes(op="output")
    with graph.inserting_before(output):
        condition = graph.call_function(compare, sides)
        if negated:
            condition = graph.call_function(torch.sym_not, (condition,))
        return graph.call_function(torch.ops.aten._assert_scalar.default, (condition, "no"))


@pytest.mark.parametrize(
    ("compare", "number", "negated", "expected"),
    [
        (operator.ge, 2, False, "2 at least"),
        (operator.gt, 0, False, "1 at least"),
        (operator.le, 4, False, "4 at most"),
        (operator.eq, 4, False, "4"),
        (operator.ne, 1, False, "another one than 1"),
        (operator.eq, 0, True, "another one than 0"),
    ],
)
def test_a_size_is_compared_with_a_number(compare: Any, number: int, negated: bool, expected: str) -> None:
    graph = program()
    rows, _ = sizes(graph)
    error = failed_check(check(graph, compare, rows, number, negated=negated), {rows: 0})
    assert error is not None and "functions.py" in str(error.where)
    assert error.message == f"aten.index.Tensor gives a size of 0 in this call, expected {expected}"


def test_two_sizes_are_compared() -> None:
    graph = program()
    rows, places = sizes(graph)
    error = failed_check(check(graph, operator.eq, rows, places), {rows: 3, places: 4})
    assert error is not None and "gives a size of 3 in this call, and aten.nonzero at" in error.message
    assert "one of 4, expected equal sizes" in error.message


def test_a_size_that_follows_from_others_is_compared() -> None:
    """As of `b - a` where `a` has no row and `b` one more: eager gives no row, and the trace took them for equal."""
    graph = program()
    rows, places = sizes(graph)
    with graph.inserting_after(places):
        more = graph.call_function(operator.add, (rows, 1))
    failed = check(graph, operator.eq, more, places)
    error = failed_check(failed, {rows: 0, more: 1, places: 0})
    assert error is not None and error.hint is not None
    assert "are 1 and 0 in this call, expected equal sizes" in error.message
    assert "expand" in error.hint
    assert failed_check(failed, {rows: 0, places: 0}) is None


def test_other_checks_have_no_error_here() -> None:
    graph = program()
    rows, places = sizes(graph)
    assert failed_check(check(graph, operator.lt, rows, 4), {rows: 5}) is None
    assert failed_check(check(graph, operator.ge, rows, 1), {}) is None
    with graph.inserting_after(places):
        rest = graph.call_function(operator.mod, (24, rows))
    assert failed_check(check(graph, operator.eq, rest, 0), {rows: 5, rest: 4}) is None, "4 is no size"
    assert failed_check(check(graph, operator.lt, rows, places), {rows: 3, places: 2}) is None
