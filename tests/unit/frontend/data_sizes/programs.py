"""Programs in which data decides sizes, divided."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from spyre_mlir.frontend.capture.export import export_model
from spyre_mlir.frontend.data_sizes.calls import import_divided
from spyre_mlir.frontend.data_sizes.dividing import DividedProgram
from spyre_mlir.frontend.program.dataclass_trees import flat_dataclasses
from tests.functions import FunctionModel

X = torch.linspace(-1.0, 1.0, 12).reshape(3, 4)


def division(function: Callable[..., Any], *args: Any) -> DividedProgram:
    given = args or (X,)
    with flat_dataclasses(given) as see:
        return import_divided("Divided", export_model(FunctionModel(function), given, {}, see))


def shifted(x: Tensor) -> Any:
    """Two pieces: the mask, and what is made of the selected numbers and their count."""
    found = x[x > 0]
    return found.reshape(found.shape[0], 1) + x.sum()
