"""Loops over slices that are refused, and what stays as it was."""

from typing import Any

import pytest
import torch
from torch._higher_order_ops.scan import scan

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend import import_program
from spyre_mlir.frontend.capture.control_flow import unrolled
from spyre_mlir.frontend.capture.control_flow.unrolled import unroll_loops
from tests.functions import FunctionModel

X, H = torch.ones(4, 3), torch.zeros(3)


def looped(x: torch.Tensor, h: torch.Tensor) -> Any:
    return scan(lambda c, row: (c + row, c * 2), h, x, dim=0)


def test_the_program_given_stays() -> None:
    program = torch.export.export(FunctionModel(looped), (X, H))
    before = str(program.graph)
    made = unroll_loops(program)
    assert str(program.graph) == before
    targets = [str(node.target) for node in made.graph.nodes if node.op == "call_function"]
    assert targets.count("aten.add.Tensor") == 4
    assert not any(node.op == "get_attr" for node in made.graph.nodes)
    names = [spec.arg.name for spec in program.graph_signature.output_specs]
    assert [spec.arg.name for spec in made.graph_signature.output_specs] == names
    (given, stacked) = made.module(check_guards=False)(X, H)
    assert torch.equal(given, X.sum(0))
    assert torch.equal(stacked[:, 0], torch.tensor([0.0, 2.0, 4.0, 6.0]))


def test_a_program_without_loops_is_itself() -> None:
    program = torch.export.export(FunctionModel(torch.add), (X, H))
    assert unroll_loops(program) is program


def test_too_many_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unrolled, "MOST_CALLS", 7)
    with pytest.raises(UnsupportedError, match="scan of 4 slices over 2 calls; all bodies may have 7 calls"):
        import_program(FunctionModel(looped), (X, H))


def test_a_number_of_slices_that_is_a_symbol() -> None:
    rows = torch.export.Dim("rows", min=2, max=8)
    with pytest.raises(UnsupportedError, match="scan over a number of slices that is a symbol"):
        import_program(FunctionModel(looped), (X, H), dynamic_shapes=(({0: rows}, None),))
