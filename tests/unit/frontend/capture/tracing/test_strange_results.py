"""Results that no program has are named, each with its place."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import spyre_mlir
from spyre_mlir.errors import UnsupportedError
from tests.functions import FunctionModel

X = torch.ones(2, 3)


def types(x: Tensor) -> Any:
    return x + 1, {"of": x.dtype, "kept": [x.shape, x.device]}


def alone(x: Tensor) -> Any:
    return frozenset((x.shape[0],))


REFUSED: dict[Callable[[Tensor], Any], str] = {
    types: "returns what no program has: torch.dtype at result[1]['of'], torch.device at result[1]['kept'][1]",
    alone: "returns what no program has: frozenset at result",
}


@pytest.mark.parametrize("program", REFUSED)
def test_they_are_refused(program: Callable[[Tensor], Any]) -> None:
    with pytest.raises(UnsupportedError, match=re.escape(REFUSED[program])) as caught:
        spyre_mlir.compile(FunctionModel(program), (X,))
    assert "torch.compile" in str(caught.value.hint)


def test_sizes_numbers_and_text_are_results() -> None:
    made = spyre_mlir.compile(FunctionModel(lambda x: (x * 2, x.shape, x.shape[1], 0.5, "text", None)), (X,))(X)
    assert made[1:] == ((2, 3), 3, 0.5, "text", None)
