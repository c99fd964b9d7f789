"""Exported programs in functional form: loops in a row, explicit draws, no writes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch._higher_order_ops.scan import scan

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend.capture.control_flow.kept import is_loop
from spyre_mlir.frontend.capture.functional_form import functional_form, unrolled_export
from tests.functions import FunctionModel

X, H = torch.ones(4, 3), torch.zeros(3)
ROWS = torch.export.Dim("rows", min=2, max=8)


def drawing_loop(x: torch.Tensor, h: torch.Tensor) -> Any:
    last, _ = scan(lambda c, row: (c + row, c * 2), h, x, dim=0)
    return (last + torch.rand_like(x.t()).t()).mul_(2)


def calls(graph: torch.fx.Graph) -> list[str]:
    return [str(node.target) for node in graph.nodes if node.op == "call_function"]


def test_bodies_of_a_loop_are_in_a_row_draws_are_explicit_and_nothing_is_written() -> None:
    given = torch.export.export(FunctionModel(drawing_loop), (X, H))
    before = str(given.graph)
    _, made = functional_form(unrolled_export(given))
    assert str(given.graph) == before
    found = calls(made.graph)
    assert found.count("aten.add.Tensor") == 4 + 1
    assert "random.uniform.default" in found
    assert not any(name.partition(".")[2].split(".")[0].endswith("_") for name in found)


def test_a_loop_over_a_symbol_stays_on_request() -> None:
    def looped(x: torch.Tensor, h: torch.Tensor) -> Any:
        return scan(lambda c, row: (c + row, c * 2), h, x, dim=0)

    given = torch.export.export(FunctionModel(looped), (X, H), dynamic_shapes=(({0: ROWS}, None),))
    assert any(is_loop(node) for node in unrolled_export(given, symbolic=True).graph.nodes)
    with pytest.raises(UnsupportedError, match="a symbol"):
        unrolled_export(given)
