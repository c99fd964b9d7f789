"""Programs whose plans are explained: a chain that shares slices, and equal layers with a loop inside."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch import nn

import spyre_mlir


class Gated(nn.Module):
    """Two products with a function between them, and a softmax."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(256, 1024, bias=False)
        self.down = nn.Linear(1024, 256, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """One call."""
        return torch.softmax(self.down(nn.functional.silu(self.up(x))), -1)


class Rows(nn.Module):
    """A softmax whose rows do not fit the scratchpads."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """One call."""
        return torch.softmax(x, -1)


class Columns(nn.Module):
    """A softmax along columns behind a function of each element, which may have a hint."""

    def __init__(self, **said: Any) -> None:
        super().__init__()
        self.said = said

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """One call."""
        with spyre_mlir.hint(**self.said) if self.said else nullcontext():
            x = torch.relu(x)
        return torch.softmax(x, 0)


class Layers(nn.Module):
    """Two equal layers of 40 operations, a region that is called twice."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """One call."""
        for layer in self.layers:
            x = layer(x)
        return x.unsqueeze(0).view(64, 1, 128)


class Layer(nn.Module):
    """A product and forty functions."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(128, 128, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """One call."""
        x = self.linear(x)
        for _ in range(20):
            x = torch.exp(torch.neg(x))
        return x


def compiled(model: nn.Module, *shape: int) -> spyre_mlir.CompiledModel:
    """A model in half precision, compiled without the cache."""
    made = spyre_mlir.compile(model.half(), (torch.zeros(*shape, dtype=torch.float16),), cache=False)
    assert isinstance(made, spyre_mlir.CompiledModel)
    return made


@pytest.fixture(scope="package")
def gated() -> spyre_mlir.CompiledModel:
    return compiled(Gated(), 512, 256)


@pytest.fixture(scope="package")
def rows() -> spyre_mlir.CompiledModel:
    return compiled(Rows(), 65536, 1024)


@pytest.fixture(scope="package")
def layers() -> spyre_mlir.CompiledModel:
    return compiled(Layers(), 64, 128)


@pytest.fixture(scope="package")
def columns() -> spyre_mlir.CompiledModel:
    return compiled(Columns(), 1024, 128)


@pytest.fixture(scope="package")
def hinted_columns() -> spyre_mlir.CompiledModel:
    return compiled(Columns(layout={"stick": 0}), 1024, 128)
