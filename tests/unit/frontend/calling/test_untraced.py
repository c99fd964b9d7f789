"""Compiled models inside of functions that torch.compile traces: Python calls them, and the rest is captured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim
from torch.fx.experimental.proxy_tensor import make_fx

import spyre_mlir

X = torch.linspace(-1.0, 1.0, 128).reshape(2, 64)


class Rows(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x[x[:, 0] > 0] * 2


def made(kind: str) -> tuple[Any, nn.Module]:
    model = Rows() if kind == "of parts" else nn.Sequential(nn.Linear(64, 64), nn.ReLU())
    given: dict[str, Any] = {"host_fallback": "allow"}
    given |= {"dynamic_shapes": ({0: Dim("n", min=2, max=9)},)} if kind == "of any size" else {}
    example = () if kind == "at the first call" else ((X,),)
    return spyre_mlir.compile(model, *example, numerics="exact", **given), model


@pytest.mark.parametrize("backend", ["spyre", "eager"])
@pytest.mark.parametrize("kind", ["of one size", "of any size", "at the first call", "of parts"])
def test_a_call_is_left_to_python(kind: str, backend: str) -> None:
    torch._dynamo.reset()
    compiled, model = made(kind)
    outer = torch.compile(lambda x: compiled(x + 1) - 3, backend=backend)
    torch.testing.assert_close(outer(X), model(X + 1) - 3, atol=0.02, rtol=0.01)


def test_of_one_graph_the_reason_names_us() -> None:
    torch._dynamo.reset()
    compiled, _ = made("of one size")
    with pytest.raises(torch._dynamo.exc.Unsupported, match="a model that spyre_mlir has compiled"):
        torch.compile(lambda x: compiled(x), backend="spyre", fullgraph=True)(X)


class Outer(nn.Module):
    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x) + 1


TRACED: dict[str, Callable[[Any], object]] = {
    "compile": lambda made: spyre_mlir.compile(Outer(made), (X,)),
    "export": lambda made: torch.export.export(Outer(made), (X,)),
    "real tensors": lambda made: make_fx(made)(X),
    "script": lambda made: torch.jit.trace(Outer(made), (X,)),
}


@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
@pytest.mark.parametrize("kind", ["of one size", "at the first call"])
@pytest.mark.parametrize("name", TRACED)
def test_a_trace_that_meets_one_is_refused(name: str, kind: str) -> None:
    compiled, model = made(kind)
    with pytest.raises(spyre_mlir.SpyreError, match="called while torch traces another one") as caught:
        TRACED[name](compiled)
    assert "the module that this one was made of" in str(caught.value)
    torch.testing.assert_close(compiled(X), model(X))


TRANSFORMED: dict[str, Callable[[Any], object]] = {
    "vmap": lambda made: torch.vmap(made)(torch.stack([X, X])),
    "jacrev": lambda made: torch.func.jacrev(made)(X),
    "grad": lambda made: torch.func.grad(lambda x: made(x).sum())(X),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_transforms_are_refused(name: str) -> None:
    compiled, _ = made("of one size")
    with pytest.raises(spyre_mlir.SpyreError, match="'input' is a tensor of a transform of torch"):
        TRANSFORMED[name](compiled)
