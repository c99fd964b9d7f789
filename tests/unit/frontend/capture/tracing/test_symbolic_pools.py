"""Pools over sizes that are symbols: what is traced gives eager's numbers for other sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.export import Dim
from torch.nn import functional

from spyre_mlir.frontend.capture.export import export_model
from spyre_mlir.frontend.program.dataclass_trees import flat_dataclasses
from tests.functions import FunctionModel

X = torch.linspace(-2.0, 1.0, 48).reshape(12, 4).sin()

POOLS: dict[str, Callable[[Tensor], Tensor]] = {
    "windows": lambda x: functional.max_pool1d(x.t()[None], 3, 1, 1),
    "strides": lambda x: torch.max_pool1d(x.t(), [2], [], [0], [1], False),
    "gaps": lambda x: functional.max_pool1d(x.t(), 3, stride=2, padding=1, dilation=2),
    "layer": lambda x: torch.nn.MaxPool1d(2)(x.t()[None]),
    "mean": lambda x: functional.adaptive_avg_pool1d(x.t()[None], 1),
    "mean_of_images": lambda x: torch.nn.AdaptiveAvgPool2d((1, 1))(x[None, None]),
    "mean_of_videos": lambda x: functional.adaptive_avg_pool3d(x[None, None, :, None], 1),
    "largest": lambda x: functional.adaptive_max_pool1d(x.t(), 1),
    "largest_of_images": lambda x: functional.adaptive_max_pool2d(x[None], output_size=1),
    "two": lambda x: functional.adaptive_avg_pool1d(x.t()[None], 2),
    "places": lambda x: functional.max_pool1d(x.t()[None], 2, 1, return_indices=True)[1],
}


def traced(function: Callable[..., Any], shapes: Any = None) -> Callable[..., Any]:
    with flat_dataclasses((X,)) as see:
        return export_model(FunctionModel(function), (X,), {}, see, shapes).module()


@pytest.mark.parametrize("pool", POOLS)
def test_symbols_are_traced(pool: str) -> None:
    of_inputs = traced(POOLS[pool], (({0: Dim("n", min=7)},),))
    of_data = traced(lambda x: (torch._check((y := x[x[:, 0] > -0.95]).shape[0] > 5), POOLS[pool](y))[1])
    assert 5 < (X[:, 0] > -0.95).sum() < 12
    for rows in (X, X[:9], X.flip(0)[:7]):
        torch.testing.assert_close(of_inputs(rows), POOLS[pool](rows))
    for rows in (X, X.roll(1, 1), X.abs()):
        torch.testing.assert_close(of_data(rows), POOLS[pool](rows[rows[:, 0] > -0.95]))
