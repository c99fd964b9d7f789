"""Which sizes torch asks about, and checks of them in a trace and in a program that was exported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from spyre_mlir.frontend.capture.tracing.assumed import assumed_by
from spyre_mlir.frontend.capture.tracing.sizes_unlike import (
    SizesUnlike,
    Unlike,
    asked_by_operator,
    checked_unlike,
    conditions_of,
    sizes_asked,
)
from spyre_mlir.frontend.torch_private import GuardOnDataDependentSymNode
from tests.functions import FunctionModel

aten = torch.ops.aten
X = torch.ones(4, 3)


def question(function: Callable[[Tensor], Any]) -> GuardOnDataDependentSymNode:
    with pytest.raises(GuardOnDataDependentSymNode) as error:
        torch.export.export(FunctionModel(function), (X,))
    return error.value


def asked(function: Callable[[Tensor], Any]) -> frozenset[Unlike]:
    return sizes_asked(question(function))


def checks(exported: Any) -> list[str]:
    return [
        str(node.args[1]) for node in exported.graph.find_nodes(op="call_function", target=aten._assert_scalar.default)
    ]


def if_some(x: Tensor) -> Any:
    rows = x[x > 0]
    return rows if rows.shape[0] == 0 else rows * 2


def test_questions_of_the_model_are_its_own() -> None:
    assert asked(lambda x: x[x > 0].roll(1, 0)) == {("u0", 0)}
    assert asked(if_some) == frozenset()
    assert sizes_asked(ValueError("u0")) == frozenset()


def norm(x: Tensor) -> Tensor:
    return torch.nn.functional.batch_norm(x[x[:, 0] > 0], None, None, training=True)


def test_a_number_that_torch_compares_a_size_with_is_known() -> None:
    assert asked(norm) == {("u0", 1)}
    assert conditions_of({("u0", 1), ("u1", 0)}) == {"Ne(u0, 1)", "u1 >= 1"}


def test_functions_of_torch_in_python_are_told_from_operators() -> None:
    assert asked_by_operator(question(lambda x: x[x > 0].roll(1, 0)))
    assert not asked_by_operator(question(norm))


def test_a_trace_checks_a_size_once() -> None:
    with SizesUnlike({("u0", 0)}):
        exported = torch.export.export(FunctionModel(lambda x: (x[x > 0] * 2).roll(1, 0)), (X,))
    assert len([text for text in checks(exported) if "u0 >= 1" in text]) == 1


def test_a_program_gets_checks_of_the_sizes_that_it_has() -> None:
    exported = torch.export.export(FunctionModel(lambda x: (x[x > 0] * 2, x[x < 0])), (X,))
    made = checked_unlike(exported, {("u1", 0), ("u7", 0)})
    (more,) = [text for text in checks(made) if text not in checks(exported)]
    assert "u1 >= 1" in more
    assert assumed_by(made) == {"u1 >= 1"}
    made.graph.lint()
