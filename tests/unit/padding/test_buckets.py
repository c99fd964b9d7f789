"""What is asked of two programs before padding is looked at."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.export import Dim

from spyre_mlir.dynamic.programs import specialized
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend import import_program
from spyre_mlir.options import CompileOptions
from spyre_mlir.padding.buckets import check_bucket


class Added(nn.Module):
    """Adds numbers of its own that depend on the length."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.arange(x.shape[0])[:, None].sqrt()


class Written(nn.Module):
    """Writes to its input."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.add_(1)


class Divided(nn.Module):
    """Reads parts of one product, which is one product for each part if there are enough rows."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(4, 192, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(x).chunk(3, 1)
        return q * k + v.tanh()


def check(model: nn.Module, *, values: bool = True) -> None:
    symbolic = import_program(model.eval(), (torch.ones(20, 4),), None, ({0: Dim("rows", min=2, max=90)},))
    larger, smaller = (specialized(symbolic, {"s0": size}) for size in (70, 8))
    if not values:
        larger = replace(larger, values={})
    check_bucket(larger, 70, [(smaller, 8)], CompileOptions())


def test_constants_that_start_alike() -> None:
    check(Added())


def test_a_form_that_is_chosen_by_the_size_is_no_difference() -> None:
    check(Divided())


def test_a_constant_without_a_value_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"the constant '.*' has no value before weights are bound"):
        check(Added(), values=False)


def test_an_input_that_is_written_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="the program writes to 'x', which is as long as the inputs"):
        check(Written())
