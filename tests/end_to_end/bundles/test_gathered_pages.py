"""Pages of tensors with more than two dimensions, gathered in parts by all cores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import spyre_mlir
from spyre_mlir.backend.check import check_path
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.dialects.spyre.kernel_gather import GatherOp
from spyre_mlir.text.render import parse_module
from spyre_mlir.universe import make_context


class Given(nn.Module):
    def forward(self, cache: Tensor, table: Tensor) -> Tensor:
        return cache[table]


class Computed(nn.Module):
    def forward(self, cache: Tensor, table: Tensor) -> Tensor:
        return torch.relu(cache).index_select(0, table.flatten())


TABLE = torch.randint(0, 9, (2, 64), generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("module", [Given(), Computed()])
def test_all_cores_gather_at_every_level(module: nn.Module, tmp_path: Path) -> None:
    """128 pages are four sticks of indices; negative numbers count from the end of whole pages."""
    cache = torch.randint(-500, 500, (9, 16, 2, 128), generator=torch.Generator().manual_seed(2)).half()
    table = TABLE - 9 if isinstance(module, Given) else TABLE
    compiled = spyre_mlir.compile(module, (cache, table))
    assert isinstance(compiled, CompiledModel)
    kernels = parse_module(compiled.mlir("spyre.kernel"), make_context())
    (gather,) = [op for op in kernels.walk() if isinstance(op, GatherOp)]
    assert gather.space_splits()["part"] == 8
    assert compiled.verify(cache, table)
    assert torch.equal(compiled(cache, table), module(cache, table))
    compiled.save(tmp_path / "saved")
    assert [f for f in check_path(tmp_path / "saved", make_context()) if f.severity == "error"] == []
    loaded: Any = spyre_mlir.load(tmp_path / "saved")
    assert torch.equal(loaded(cache, table.flip(0)), module(cache, table.flip(0)))
