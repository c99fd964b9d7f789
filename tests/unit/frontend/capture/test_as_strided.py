"""`as_strided` walks the memory behind a tensor, not the elements that the tensor shows."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch

import spyre_mlir
from spyre_mlir.errors import InputError, UnsupportedError
from tests.functions import FunctionModel

X = torch.arange(24.0).reshape(4, 6)


def _written_through_strides(x: torch.Tensor) -> torch.Tensor:
    copy = x.t().clone()
    copy.as_strided((3, 2), (2, 5), 1).mul_(2)
    return copy


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.t().as_strided((3, 3), (2, 5), 1),
        lambda x: (x.t() + 1).as_strided((3, 3), (2, 5), 1),
        lambda x: x[:, 1:].as_strided((3, 3), (2, 5)),
        lambda x: x[1:3].as_strided((2, 2), (6, 1)),
        lambda x: x[1:3].as_strided((2, 2), (6, 1), 0),
        lambda x: x.expand(3, 4, 6).as_strided((3, 3), (2, 5), 1),
        lambda x: torch.as_strided_copy(x.t(), (3, 3), (2, 5), 1),
        lambda x: torch.as_strided_scatter(x.t(), torch.ones(2, 2), (2, 2), (6, 2), 1),
        lambda x: x[2:2].as_strided((2, 3), (6, 1), 1),
        lambda x: x[2:2].as_strided((2,), (1,)) * 2,
        lambda x: (x * 2)[:, 3:3].t().as_strided((3,), (2,), 5),
        lambda x: torch.as_strided_copy(x[4:], (2,), (1,), 1),
        _written_through_strides,
    ],
)
def test_walks_go_through_memory(function: Callable[[torch.Tensor], torch.Tensor]) -> None:
    compiled = spyre_mlir.compile(FunctionModel(function), (X,), numerics="exact")
    assert torch.equal(compiled(X), function(X))


def test_input_that_lies_transposed() -> None:
    x = X.t()
    compiled = spyre_mlir.compile(FunctionModel(lambda x: x.as_strided((3, 3), (2, 5), 1)), (x,), numerics="exact")
    assert torch.equal(compiled(x), x.as_strided((3, 3), (2, 5), 1))


def _off(count: int, *shape: int) -> torch.Tensor:
    """A contiguous tensor that starts behind so many elements of its storage."""
    return torch.arange(64.0)[count:][: math.prod(shape)].reshape(shape)


@pytest.mark.parametrize(
    ("function", "other"),
    [
        (lambda x: x.as_strided((4,), (6,)), X.reshape(6, 4).t()),
        (lambda x: (x.t() + 1).as_strided((3, 3), (2, 5)), X.reshape(6, 4).t()),
        (lambda x: x.as_strided((3, 3), (2, 5), 4), _off(3, 4, 6)),
        (lambda x: torch.as_strided_scatter(x.abs(), torch.ones(2, 2), (2, 2), (6, 2)), X.reshape(6, 4).t()),
    ],
)
def test_a_call_with_a_tensor_that_lies_otherwise_is_refused(
    function: Callable[[torch.Tensor], torch.Tensor], other: torch.Tensor
) -> None:
    compiled = spyre_mlir.compile(FunctionModel(function), (X,), numerics="exact")
    assert torch.equal(compiled(X), function(X))
    with pytest.raises(InputError, match=r"argument 'args_0': the model walks its memory .* made for strides \(6, 1\)"):
        compiled(other)


@pytest.mark.parametrize(
    ("function", "example", "other"),
    [
        (lambda x: x.as_strided((3, 3), (2, 5)), X, _off(3, 4, 6)),  # counted from where the tensor starts
        (lambda x: x.as_strided((3, 3), (2, 5), 5), _off(3, 4, 6), X),  # export lets every input start at 0
        (lambda x: x.as_strided((3,), (1,)), X[:1], X.t()[:, :1].contiguous().t()),  # one element has any stride
        (lambda x: torch.as_strided_scatter(torch.zeros(30), x, (4, 6), (7, 1)), X, X.reshape(6, 4).t()),  # written
        (lambda x: x.t() + torch.arange(9.0).as_strided((6, 1), (1, 1)), X, X.reshape(6, 4).t()),  # not what is walked
    ],
)
def test_only_what_a_walk_depends_on_must_lie_as_the_example(
    function: Callable[[torch.Tensor], torch.Tensor], example: torch.Tensor, other: torch.Tensor
) -> None:
    compiled = spyre_mlir.compile(FunctionModel(function), (example,), numerics="exact")
    assert torch.equal(compiled(other), function(other))


def test_gaps_are_refused() -> None:
    def between(x: torch.Tensor) -> torch.Tensor:
        return torch.as_strided_scatter(x[:, ::2], torch.ones(2, 2), (2, 2), (6, 2), 0)

    with pytest.raises(UnsupportedError, match="as_strided_scatter: it walks memory that its tensor has gaps in") as no:
        spyre_mlir.compile(FunctionModel(between), (X,))
    assert "contiguous" in str(no.value)
