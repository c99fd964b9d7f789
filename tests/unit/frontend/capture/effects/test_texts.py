"""Results that are texts."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import spyre_mlir
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend import import_program
from tests.functions import FunctionModel


def of_data(x: Tensor) -> tuple[Tensor, str]:
    return x + 1, f"the sum is {x.sum().item()}"


def of_size(x: Tensor) -> tuple[Tensor, str]:
    return x + 1, str(x.shape[0])


def known(x: Tensor) -> tuple[Tensor, str]:
    return x + 1, f"{x.shape[1]} columns"


def test_texts_of_numbers_that_calls_decide_are_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"the text 'the sum is \w+', in which \w+ stands for a number"):
        spyre_mlir.compile(FunctionModel(of_data), (torch.ones(2, 3),))
    with pytest.raises(UnsupportedError, match="the text 's"):
        import_program(FunctionModel(of_size), (torch.ones(2, 3),), dynamic_shapes=(({0: torch.export.Dim("rows")},),))


@pytest.mark.parametrize("function", [known, of_size])
def test_texts_of_known_numbers_are_results(function: Callable[..., tuple[Tensor, str]]) -> None:
    x = torch.ones(2, 3)
    _, text = spyre_mlir.compile(FunctionModel(function), (x,))(x)
    assert text == function(x)[1]
