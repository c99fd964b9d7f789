"""Programs whose graphs are looked at: layers in modules, a host step, and a module that is called twice."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import spyre_mlir
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.report.graphs import LevelGraphs


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(64, 128)
        self.down = nn.Linear(128, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(torch.relu(self.up(x)))


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Block() for _ in range(2))
        self.norm = nn.LayerNorm(64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = self.norm(layer(x))
        left, right = x.split(32, -1)
        largest, place = x.max(-1, keepdim=True)
        return torch.special.bessel_j1(left) * torch.sin(right) + largest * place


@pytest.fixture(scope="package")
def net() -> CompiledModel:
    with pytest.warns(UserWarning, match="bessel"):
        made = spyre_mlir.compile(Net().eval(), (torch.zeros(64, 64),))
    assert isinstance(made, CompiledModel)
    return made


@pytest.fixture(scope="package")
def graphs(net: CompiledModel) -> LevelGraphs:
    return net.graphs()
