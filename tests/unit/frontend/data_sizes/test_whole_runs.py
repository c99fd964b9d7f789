"""Calls that torch's operators run: without what the trace takes for granted, with writes and errors of the model."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from spyre_mlir.errors import InputError
from spyre_mlir.frontend.capture.export import export_model
from spyre_mlir.frontend.data_sizes.whole_runs import results_of_torch
from tests.functions import FunctionModel

X = torch.linspace(-1, 1, 12).reshape(4, 3)


def test_a_call_is_eager() -> None:
    def rolled(x: Tensor) -> Any:
        return x[x > 0].roll(1, 0), x + 1

    exported = export_model(FunctionModel(rolled), (X,), {})
    for x in (-X.abs(), X):
        torch.testing.assert_close(results_of_torch(exported, (x,), {}), rolled(x))


class Counted(nn.Module):
    """Counts the rows that it has rolled."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros((), dtype=torch.long))

    def forward(self, x: Tensor) -> Tensor:
        rows = x[x > 0].roll(1, 0)
        self.count += rows.shape[0] + 1
        return rows


def test_buffers_are_those_of_the_model() -> None:
    model = Counted()
    exported = export_model(model, (X,), {})
    results_of_torch(exported, (-X.abs(),), {})
    assert model.count == 1


def test_what_torch_refuses_is_an_error_with_its_line() -> None:
    def steps(x: Tensor) -> Tensor:
        return torch.quantile(x[x > 0].roll(1, 0)[1:], 0.5)

    exported = export_model(FunctionModel(steps), (X,), {})
    with pytest.raises(InputError, match=r"refuses the sizes of this call") as no:
        results_of_torch(exported, (-X.abs(),), {})
    assert "functions.py" in str(no.value.where)
