"""Derivatives in models: found while they are traced and in graphs, and written out as plain operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.fx import symbolic_trace

import spyre_mlir
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend.capture.tracing.derivatives import (
    DerivativesSought,
    DerivativeTakenError,
    Differentiated,
    check_no_derivative,
    takes_derivatives,
)
from spyre_mlir.frontend.importer import import_program
from tests.functions import FunctionModel

X = torch.tensor([[0.5, -1.0], [2.0, 0.25]])


def cubes(x: Tensor) -> Tensor:
    return (x**3).sum()


def by_autograd(x: Tensor) -> Tensor:
    return torch.autograd.grad(cubes(x), x)[0]


def by_backward(x: Tensor) -> None:
    cubes(x).backward()


@pytest.mark.parametrize(
    "function",
    [
        torch.func.grad(cubes),
        torch.func.hessian(cubes),
        torch.func.vmap(torch.func.grad(cubes)),
        lambda x: torch.func.jvp(cubes, (x,), (x,)),
        lambda x: torch.func.vjp(cubes, x)[1](torch.tensor(1.0)),
        by_autograd,
        by_backward,
    ],
)
def test_a_derivative_breaks_the_trace_off(function: Callable[[Tensor], Any]) -> None:
    with pytest.raises(DerivativeTakenError), DerivativesSought():
        function(X.clone().requires_grad_())
    assert torch._C._functorch.get_dynamic_layer_stack_depth() == 0


def test_other_functions_are_traced_on() -> None:
    with DerivativesSought():
        assert torch.equal(torch.func.vmap(torch.sum)(X), X.sum(1))
        torch.testing.assert_close(torch.nn.functional.softmax(X, dim=-1).sum(-1), torch.ones(2))


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(2, 2)
        self.twin = self.inner
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x: Tensor, *, power: int) -> dict[str, Any]:
        self.calls.add_(1)
        return {"gradient": torch.func.grad(lambda y: (self.twin(y) ** power).sum())(x), "power": power}


def test_a_graph_stands_for_the_model() -> None:
    model = Scaled()
    written = Differentiated(model, (X,), {"power": 3})
    assert model.calls.item() == 0, "the trace changes nothing"
    assert dict(written.named_parameters()).keys() == dict(model.named_parameters()).keys()
    with torch.no_grad():
        for value in (X, X * 2):
            expected = Scaled.forward(model, value, power=3)
            found = written(value, power=3)
            assert found.keys() == expected.keys()
            assert found["power"] == 3
            torch.testing.assert_close(found["gradient"], expected["gradient"])
        assert model.calls.item() == 4, "both have counted"
        model.inner.weight.mul_(2)
        torch.testing.assert_close(
            written(X, power=3)["gradient"], Scaled.forward(model, X, power=3)["gradient"], msg="weights are read anew"
        )


def test_results_are_read_for_more_than_their_shapes() -> None:
    """The sum whose derivative is taken is of no use for the derivative, and gone."""
    text = str(import_program(FunctionModel(torch.func.grad(cubes)), (X,)).module)
    assert "aten.pow" in text or "aten.mul" in text
    assert "aten.sum" not in text


def test_graphs_that_dynamo_captured_are_known() -> None:
    found: list[bool] = []

    def note(graph: Any, _: Any) -> Any:
        found.append(takes_derivatives(graph))
        return graph.forward

    for function in (torch.func.grad(cubes), cubes):
        torch._dynamo.reset()
        torch.compile(lambda x, f=function: f(x), backend=note)(X)
    assert found == [True, False]
    assert not takes_derivatives(symbolic_trace(nn.Linear(2, 2)))
    assert not takes_derivatives(Scaled())


@pytest.mark.parametrize("function", [torch.func.grad(cubes), lambda x: torch.func.jvp(cubes, (x,), (x,))[1]])
def test_exported_programs_with_derivatives_are_refused(function: Callable[[Tensor], Tensor]) -> None:
    exported = torch.export.export(FunctionModel(function), (X,))
    with pytest.raises(UnsupportedError, match=r"the exported program takes derivatives") as refused:
        spyre_mlir.compile(exported)
    assert "compile the module itself" in str(refused.value.hint)
    check_no_derivative(torch.export.export(FunctionModel(cubes), (X,)))
