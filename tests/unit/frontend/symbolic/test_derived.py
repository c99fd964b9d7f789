"""Programs with a size that is an expression: read from a file, they are refused by this size."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

import spyre_mlir
from spyre_mlir.errors import InputError
from spyre_mlir.frontend.symbolic.derived import derived_refusal


class Two(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return x * 2, y + 1


def exported(of_y: object) -> ExportedProgram:
    shapes = {"x": {0: Dim("b", min=2, max=64)}, "y": {0: of_y}}
    return torch.export.export(Two(), (torch.ones(4, 3), torch.ones(8)), dynamic_shapes=shapes)


def test_a_program_from_a_file_is_refused_by_the_size(tmp_path: Path) -> None:
    """As it was exported, it is compiled."""
    program = exported(2 * Dim("b", min=2, max=64))
    spyre_mlir.compile(program)
    torch.export.save(program, str(tmp_path / "a.pt2"))
    for read in (torch.export.load(str(tmp_path / "a.pt2")), tmp_path / "a.pt2"):
        with pytest.raises(InputError, match=r"a size is 2\*s\d+, and torch cannot decompose") as no:
            spyre_mlir.compile(read)
        assert no.value.where == "the input y"
        assert "or compile the module itself" in str(no.value.hint)


def test_symbols_of_their_own_are_no_expressions() -> None:
    assert derived_refusal(exported(Dim("c", min=2, max=64))) is None
