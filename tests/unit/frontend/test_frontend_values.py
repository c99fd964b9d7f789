"""The model's tensors as the rest of the package takes them: parameters from the model, the rest copied."""

from __future__ import annotations

import numpy as np
import torch

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
