"""The model's tensors as the rest of the package takes them: parameters from the model, the rest copied."""

from __future__ import annotations

import numpy as np
import torch

import spyre_mlir
from spyre_mlir.frontend import HostValues, import_program


class Counter(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))
        self.register_buffer("count", torch.zeros(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count.add_(x)
        return x * self.weight + self.count


def test_parameters_are_not_copied_and_what_calls_change_is() -> None:
    model = Counter()
    values = HostValues(import_program(model, (torch.ones(3),), None))
    assert sorted(values) == ["count", "weight"]
    assert len(values) == 2
    assert "weight" in values
    assert "bias" not in values
    with torch.no_grad():
        model.weight.fill_(5)
        model.count.fill_(7)
    assert values["weight"].tolist() == [5, 5, 5]
    assert values["count"].tolist() == [0, 0, 0]
    values["count"] = np.ones(3)
    assert values["count"].tolist() == [1, 1, 1]
    assert model.count.tolist() == [7, 7, 7]


def test_elements_that_nobody_set_are_zero() -> None:
    class Unset(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
            return torch.empty(64) + x, x.new_empty(64), torch.empty_strided((8, 8), (1, 8))

    x = torch.zeros(64)
    assert all(not r.any() for r in spyre_mlir.compile(Unset(), (x,))(x))
