"""Columns that readers take apart: known by their numbers, however a model takes them."""

from __future__ import annotations

import pytest
from torch import nn
from xdsl.dialects import func

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.frontend import import_program
from spyre_mlir.transforms.aten_forms.recognition.taken_columns import taken_columns
from tests.unit.transforms.aten_forms.interleaved import Alternating, ByHead, Halves, Overlapping, Turned, rows


def numbers(model: nn.Module) -> list[list[int]]:
    """The columns of each reader of a model's layer, the first ones first."""
    module = import_program(model, (rows(),)).module
    (function,) = (op for op in module.walk() if isinstance(op, func.FuncOp))
    (layer,) = (op for op in module.walk() if isinstance(op, AtenOp) and op.overload == "linear")
    return sorted(taken.columns for taken in taken_columns(function, layer))


@pytest.mark.parametrize("model", [ByHead(), Turned()])
def test_heads_have_columns_of_their_own(model: nn.Module) -> None:
    queries, keys, values = numbers(model)
    assert queries == [*range(64), *range(192, 256)]
    assert keys == [n + 64 for n in queries] and values == [n + 128 for n in queries]


def test_every_other_column_is_known() -> None:
    assert numbers(Alternating()) == [list(range(0, 256, 2)), list(range(1, 256, 2))]


@pytest.mark.parametrize("model", [Halves(), Overlapping()])
def test_adjoining_and_common_columns_are_left(model: nn.Module) -> None:
    assert numbers(model) == []
