"""Tracing leaves the Python objects of a model as they were."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import spyre_mlir
from spyre_mlir.frontend.capture.export import export_model
from spyre_mlir.frontend.capture.tracing.python.state import python_state_kept

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


class Angles:
    """No module: a table that is made at the first call, as rotary embeddings have it."""

    def __init__(self) -> None:
        self.tables: dict[str, dict[int, Any]] = {"by length": {}}
        self.longest = 0
        self.seen: list[Any] = []

    def __call__(self, x: Tensor) -> Tensor:
        if x.shape[-1] > self.longest:
            self.longest = x.shape[-1]
            self.tables["by length"][self.longest] = (torch.arange(self.longest) * 2.0, "turns")
            self.seen.append(x)
        return x + self.tables["by length"][x.shape[-1]][0]


class Rotated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.angles = Angles()

    def forward(self, x: Tensor) -> Tensor:
        return self.angles(x)


WANTED = torch.tensor([[1.0, 4.0, 7.0], [4.0, 7.0, 10.0]])


def test_a_model_with_a_cache_is_as_it_was() -> None:
    model = Rotated()
    export_model(model, (X,), {})
    assert vars(model.angles) == {"tables": {"by length": {}}, "longest": 0, "seen": []}
    assert torch.equal(copy.deepcopy(model)(X), WANTED)


def test_it_compiles_runs_and_is_measured() -> None:
    model = Rotated()
    compiled = spyre_mlir.compile(model, (X,), numerics="exact")
    assert torch.equal(compiled(X), WANTED)
    assert compiled.accuracy(X).worst == 0.0
    assert torch.equal(model(X), WANTED)


def test_without_tensors_of_a_trace_nothing_is_undone() -> None:
    model = Rotated()
    with python_state_kept(model):
        model(X)
    assert model.angles.longest == 3


def test_it_is_undone_after_an_error_too() -> None:
    class Failing(Rotated):
        def forward(self, x: Tensor) -> Tensor:
            super().forward(x)
            raise ValueError("no more")

    model = Failing()
    with pytest.raises(ValueError, match="no more"):
        export_model(model, (X,), {})
    assert model.angles.tables == {"by length": {}}
