"""`as_strided` walks the memory behind a tensor, not the elements that the tensor shows."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import spyre_mlir
from spyre_mlir.errors import UnsupportedError
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


def test_gaps_are_refused() -> None:
    def between(x: torch.Tensor) -> torch.Tensor:
        return torch.as_strided_scatter(x[:, ::2], torch.ones(2, 2), (2, 2), (6, 2), 0)

    with pytest.raises(UnsupportedError, match="as_strided_scatter: it walks memory that its tensor has gaps in") as no:
        spyre_mlir.compile(FunctionModel(between), (X,))
    assert "contiguous" in str(no.value)
