"""A softmax in time, for what is drawn of it."""

from __future__ import annotations

import pytest
import torch

import spyre_mlir
from spyre_mlir.machine.bundle.timeline import Timeline


class Softmax(torch.nn.Module):
    """Softmax along the rows."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """One call."""
        return torch.softmax(x, -1)


@pytest.fixture(scope="package")
def softmax() -> spyre_mlir.CompiledModel:
    """A softmax of 512 rows of 1024, compiled."""
    compiled = spyre_mlir.compile(Softmax(), (torch.randn(512, 1024),))
    assert isinstance(compiled, spyre_mlir.CompiledModel)
    return compiled


@pytest.fixture(scope="package")
def softmax_timeline(softmax: spyre_mlir.CompiledModel) -> Timeline:
    """The softmax in time."""
    return softmax.timeline()
