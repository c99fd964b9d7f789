"""Which sizes torch asks about, and checks of them in a trace and in a program that was exported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from spyre_mlir.frontend.capture.tracing.sizes_above_zero import SizesAboveZero, checked_above_zero, sizes_asked
from spyre_mlir.frontend.torch_private import GuardOnDataDependentSymNode
from tests.functions import FunctionModel

aten = torch.ops.aten
X = torch.ones(4, 3)


def asked(function: Callable[[Tensor], Any]) -> frozenset[str]:
    with pytest.raises(GuardOnDataDependentSymNode) as error:
        torch.export.export(FunctionModel(function), (X,))
    return sizes_asked(error.value)


def checks(exported: Any) -> list[str]:
    return [
        str(node.args[1]) for node in exported.graph.find_nodes(op="call_function", target=aten._assert_scalar.default)
    ]


def if_some(x: Tensor) -> Any:
    rows = x[x > 0]
    return rows if rows.shape[0] == 0 else rows * 2


def test_questions_of_the_model_are_its_own() -> None:
    assert asked(lambda x: x[x > 0].roll(1, 0)) == {"u0"}
    assert asked(if_some) == frozenset()
    assert sizes_asked(ValueError("u0")) == frozenset()


def test_a_trace_checks_a_size_once() -> None:
    with SizesAboveZero({"u0"}):
        exported = torch.export.export(FunctionModel(lambda x: (x[x > 0] * 2).roll(1, 0)), (X,))
    assert len([text for text in checks(exported) if "u0 >= 1" in text]) == 1


def test_a_program_gets_checks_of_the_sizes_that_it_has() -> None:
    exported = torch.export.export(FunctionModel(lambda x: (x[x > 0] * 2, x[x < 0])), (X,))
    made = checked_above_zero(exported, {"u1", "u7"})
    (more,) = [text for text in checks(made) if text not in checks(exported)]
    assert "u1 >= 1" in more
    made.graph.lint()
