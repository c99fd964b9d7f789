"""Export and import under the names of PyTorch-IR."""

from __future__ import annotations

import pytest
import torch

import spyre_mlir
from spyre_mlir.errors import ImportProgramError


class Scaled(torch.nn.Module):
    def forward(self, x: torch.Tensor, by: float = 2.0) -> torch.Tensor:
        return torch.nn.functional.silu(x) * by


X = torch.ones(2, 3)


@pytest.mark.parametrize("strict", [False, True])
def test_the_exported_graph_has_what_the_model_calls(strict: bool) -> None:
    exported = spyre_mlir.export_model(Scaled(), (X,), strict=strict)
    called = [node.target for node in exported.graph_module.graph.nodes if node.op == "call_function"]
    assert called == [torch.ops.aten.silu.default, torch.ops.aten.mul.Tensor]


def test_the_program_is_at_the_aten_level() -> None:
    program = spyre_mlir.extract_ir(Scaled(), (X,), {"by": 3.0}, strict=False)
    text = str(program.module)
    assert "aten.silu(%x)" in text
    assert "aten.mul.Tensor(%silu) {other = 3.000000e+00 : f64}" in text


def test_a_model_that_cannot_be_traced_is_refused() -> None:
    with pytest.raises(ImportProgramError, match=r"torch\.export cannot trace Scaled"):
        spyre_mlir.export_model(Scaled(), (X, X, X))
