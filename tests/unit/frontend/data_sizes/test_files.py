"""Exported programs as files: tensors as they are, and what cannot be written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._higher_order_ops.while_loop import while_loop

import spyre_mlir
from spyre_mlir.errors import ImportProgramError, InputError
from spyre_mlir.frontend.data_sizes.files import read_exported, write_exported


class Selecting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("limit", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        return x[x > self.limit]


def test_tensors_are_written_as_they_are(tmp_path: Path) -> None:
    model = Selecting()
    exported = torch.export.export(model, (torch.ones(4),))
    model.limit.fill_(2.5)
    write_exported(exported, tmp_path / "a.pt2")
    again = read_exported(tmp_path / "a.pt2").module()
    assert again(torch.tensor([1.0, 2.0, 3.0, 4.0])).tolist() == [3.0, 4.0]


@pytest.mark.filterwarnings("ignore::spyre_mlir.transforms.utils.host_fallback.HostStepWarning")
def test_a_number_that_a_loop_carries_is_a_tensor_in_a_file(tmp_path: Path) -> None:
    """Torch cannot write one of Python."""

    class Counted(nn.Module):
        def forward(self, x: Tensor) -> Any:
            return while_loop(lambda i, _: i < 4, lambda i, a: (i + 1, a * 2), (0, x))

    x = torch.tensor([1.5, -2.0])
    saved = spyre_mlir.compile(Counted(), (x,), numerics="exact").save(tmp_path / "saved")
    number, doubled = spyre_mlir.load(saved, numerics="exact")(x)
    assert type(number) is int and number == 4 and torch.equal(doubled, x * 16)


def test_tensors_without_values_are_named(tmp_path: Path) -> None:
    exported = torch.export.export(Selecting().to("meta"), (torch.ones(4, device="meta"),))
    with pytest.raises(InputError, match="the model has no values for limit"):
        write_exported(exported, tmp_path / "a.pt2")


def test_a_text_among_the_results_is_refused(tmp_path: Path) -> None:
    """Torch writes it, and does not read what it has written."""

    class Named(Selecting):
        def forward(self, x: Tensor) -> Any:
            return {"rows": super().forward(x), "kind": "some rows"}

    exported = torch.export.export(Named(), (torch.ones(4),))
    with pytest.raises(InputError, match="a result is the text 'some rows', and torch cannot read such a program"):
        write_exported(exported, tmp_path / "a.pt2")
    assert not (tmp_path / "a.pt2").exists()


def test_another_file_is_no_program(tmp_path: Path) -> None:
    (tmp_path / "a.pt2").write_text("no zip")
    with pytest.raises(ImportProgramError, match="not a zip archive"):
        read_exported(tmp_path / "a.pt2")
