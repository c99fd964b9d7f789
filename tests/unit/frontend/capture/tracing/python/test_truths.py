"""Truth values of Python that a model returns: those of eager, for tensors that are equal, close, and neither."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import spyre_mlir
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend.capture.tracing.python import truths
from tests.functions import FunctionModel

X = torch.tensor([[1.0, -2.0], [0.5, 4.0]])
NAN = torch.tensor([[1.0, float("nan")], [0.5, 4.0]])
PAIRS = [
    (X, X.clone()),
    (X, X + torch.tensor([[0.0, 0.0], [0.0, 1.0]])),
    (X, X[:1]),
    (X, X.view(4)),
    (NAN, NAN.clone()),
    (NAN, X),
    (X[:0], X[:0].clone()),
    (torch.tensor([1, 2]), torch.tensor([1, 2])),
    (torch.tensor([1, 2]), torch.tensor([1.0, 2.0])),
    (torch.tensor([True]), torch.tensor([False])),
]


@pytest.mark.parametrize("number", range(len(PAIRS)))
def test_parts_are_the_functions_of_torch(number: int) -> None:
    x, y = PAIRS[number]
    assert truths.equal(x, y) is torch.equal(x, y)
    if x.dtype is y.dtype and x.dim() == y.dim():
        for given in ({}, {"equal_nan": True}, {"rtol": 0.0, "atol": 2.0}):
            assert truths.allclose(x, y, **given) is torch.allclose(x, y, **given)


def test_only_elements() -> None:
    for value in (torch.tensor(0.0), torch.tensor([[3]]), torch.tensor([False]), torch.tensor(float("nan"))):
        assert truths.is_nonzero(value) is value.is_nonzero()
    assert truths.is_nonzero(X) is None


RETURNED: list[Callable[[Tensor, Tensor], Any]] = [
    torch.equal,
    lambda x, y: x.equal(y),
    torch.allclose,
    lambda x, y: (x + y, x.allclose(y, atol=2.0), [torch.equal(x, y)]),
    lambda x, y: (x - y)[0, 0].is_nonzero(),
]


@pytest.mark.filterwarnings("ignore::spyre_mlir.transforms.utils.host_fallback.HostStepWarning")
@pytest.mark.parametrize("number", range(len(RETURNED)))
def test_a_model_returns_truth_values_of_python(number: int) -> None:
    function = RETURNED[number]
    made = spyre_mlir.compile(FunctionModel(function), (X, X), numerics="exact")
    for x, y in PAIRS[:2]:
        found, expected = (torch.utils._pytree.tree_leaves(f(x, y)) for f in (made, function))
        assert [type(one) for one in found] == [type(one) for one in expected]
        assert all(
            bool((a == b).all()) if isinstance(a, Tensor) else a is b for a, b in zip(found, expected, strict=True)
        )


def test_shapes_decide_at_once() -> None:
    made = spyre_mlir.compile(FunctionModel(torch.equal), (X, X[:1]))
    assert made(X, X[:1]) is False
    assert not made.host_steps


def test_known_values_are_compared_too() -> None:
    known = torch.tensor([[1.0, -2.0], [0.5, 4.0]])
    made = spyre_mlir.compile(FunctionModel(lambda x: (x * 2, torch.equal(known, known * 1))), (X,))
    doubled, same = made(X)
    torch.testing.assert_close(doubled, X * 2)
    assert same is True


def test_branches_by_such_values_are_refused_by_name() -> None:
    def function(x: Tensor, y: Tensor) -> Tensor:
        return x if torch.equal(x, y) else y

    with pytest.raises(UnsupportedError, match="decides its control flow or a shape by the values of a tensor") as e:
        spyre_mlir.compile(FunctionModel(function), (X, X))
    assert "use torch.where, or torch.cond, instead of `if`" in str(e.value.hint)
