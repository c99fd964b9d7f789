"""Operators that write to their arguments in graphs that AOTAutograd made: values and gradients are eager's."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch._inductor import config

from spyre_mlir.errors import SpyreError, UnsupportedError

TRAINING = {"training": True, "numerics": "exact", "host_fallback": "allow"}
X = torch.randn(2, 4, generator=torch.Generator().manual_seed(1))


@torch.library.custom_op("spyre_tests::add_twice", mutates_args={"total"})
def add_twice(total: Tensor, more: Tensor) -> Tensor:
    total.add_(more, alpha=2)
    return total.sum()


@add_twice.register_fake
def _(total: Tensor, more: Tensor) -> Tensor:
    return total.new_empty(())


class Model(nn.Module):
    def __init__(self, inner: Callable[[Model, Tensor], Tensor]) -> None:
        super().__init__()
        self.linear, self.inner = nn.Linear(4, 4), inner
        self.even = nn.Buffer(torch.arange(8.0).reshape(2, 4))
        self.total = nn.Buffer(torch.arange(17.0)[1:].reshape(2, 8)[:, ::2])  # has gaps, also where its memory starts

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(self, x).square().sum()


def a_buffer(model: Model, x: Tensor) -> Tensor:
    y = model.linear(x)
    return y * add_twice(model.even, y.detach())


def a_new_tensor(model: Model, x: Tensor) -> Tensor:
    y = x.clone()
    add_twice(y, x)
    return model.linear(x) * y


def views(model: Model, x: Tensor) -> Tensor:
    y = x.clone()
    add_twice(y[0], x[1])
    add_twice(y.t()[1:3], x.t()[:2])
    add_twice(model.even[1:], y[:1])
    return model.linear(x) * y


def a_buffer_with_gaps(model: Model, x: Tensor) -> Tensor:
    add_twice(model.total, x)
    return model.linear(x) * model.total


def trained(model: Model) -> tuple[Tensor, list[Tensor | None], list[Tensor]]:
    """The loss and gradients of two calls, and the buffers."""
    run = torch.compile(model, backend="spyre", options=TRAINING, fullgraph=True)
    run(X).backward()
    loss = run(X)
    loss.backward()
    return loss, [p.grad for p in model.parameters()], list(model.buffers())


@pytest.mark.parametrize("inner", [a_buffer, a_new_tensor, views, a_buffer_with_gaps])
def test_values_and_gradients_are_eagers(inner: Callable[[Model, Tensor], Tensor]) -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = Model(inner)
    twin = copy.deepcopy(model)
    with torch.enable_grad():
        got = trained(model)
        with torch.compiler.set_stance("force_eager"):
            wanted = trained(twin)
    torch.testing.assert_close(got, wanted, rtol=2e-5, atol=2e-5)


def test_a_view_by_strides_of_a_buffer_with_gaps_is_refused() -> None:
    """The clone of the buffer has no gaps, so that these strides would lead to other elements."""

    def inner(model: Model, x: Tensor) -> Tensor:
        add_twice(model.total[0], x[0])
        return model.linear(x) * model.total

    with (
        torch.enable_grad(),
        pytest.raises(UnsupportedError, match="writes to a view of a tensor that has gaps"),
    ):
        trained(Model(inner))


def test_calls_without_bases_of_views_have_a_form_too() -> None:
    with config.patch(enable_auto_functionalized_v2=False):
        test_values_and_gradients_are_eagers(a_buffer)


def test_checks_of_operators_hold_in_training() -> None:
    """Torch passes them tokens, which are results of the forward pass."""
    run = torch.compile(lambda x: torch.linalg.inv(x).square().sum(), backend="spyre", options=TRAINING)
    with torch.enable_grad():
        x = (X @ X.t() + torch.eye(2)).requires_grad_()
        twin = x.detach().clone().requires_grad_()
        run(x).backward()
        torch.linalg.inv(twin).square().sum().backward()
        torch.testing.assert_close(x.grad, twin.grad, rtol=2e-5, atol=2e-5)
        with pytest.raises(SpyreError, match="the input matrix is singular"):
            run(torch.ones(2, 2, requires_grad=True))
