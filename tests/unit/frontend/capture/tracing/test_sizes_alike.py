"""Which sizes torch compares, and checks in a trace that they are equal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from spyre_mlir.frontend.capture.tracing.sizes_alike import SizesAlike, conditions_of, sizes_compared
from spyre_mlir.frontend.torch_private import GuardOnDataDependentSymNode
from tests.functions import FunctionModel

aten = torch.ops.aten
X = torch.ones(4, 3)


def compared(function: Callable[[Tensor], Any]) -> frozenset[frozenset[str]]:
    with pytest.raises(GuardOnDataDependentSymNode) as error:
        torch.export.export(FunctionModel(function), (X,))
    return sizes_compared(error.value)


def alike(x: Tensor) -> Tensor:
    return functional.l1_loss(x[x > 0], x[x > 0] * 2)


def if_alike(x: Tensor) -> Tensor:
    a, b = x[x > 0], x[x < 2]
    return a + b if a.shape[0] == b.shape[0] else a


def test_questions_of_the_model_are_its_own() -> None:
    assert compared(alike) == {frozenset({"u0", "u1"})}
    assert compared(if_alike) == frozenset()
    assert compared(lambda x: x[x > 0].roll(1, 0)) == frozenset()
    assert sizes_compared(ValueError("u0")) == frozenset()


def test_a_trace_checks_a_pair_once() -> None:
    with SizesAlike({frozenset({"u0", "u1"}), frozenset({"u0", "u7"})}):
        exported = torch.export.export(FunctionModel(alike), (X,))
    nodes = exported.graph.find_nodes(op="call_function", target=aten._assert_scalar.default)
    assert len([node for node in nodes if "Eq(u0, u1)" in str(node.args[1])]) == 1


def test_conditions_are_told_in_either_order() -> None:
    assert conditions_of({frozenset({"u0", "u1"})}) == {"Eq(u0, u1)", "Eq(u1, u0)"}
