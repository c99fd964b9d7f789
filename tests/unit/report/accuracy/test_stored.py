"""Accuracy of a saved bundle: errors against exact numerics, the cure that holds, and what it takes to try it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import spyre_mlir
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.report.accuracy.stored import NO_LEVELS

pytestmark = pytest.mark.filterwarnings("ignore::spyre_mlir.machine.overflows.DL16OverflowWarning")
X = torch.linspace(1, 2, 4 * 64).reshape(4, 64)


class Growing(torch.nn.Module):
    """Beyond DLFloat16 between two steps: in a multiplication, or in a product of matrices."""

    def __init__(self, *, product: bool = False) -> None:
        super().__init__()
        self.product = product
        self.weight = torch.nn.Parameter(torch.full((64, 64), 1e9))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x @ self.weight if self.product else x * 1e9 * 16.0) * 1e-9


def saved(path: Path, model: torch.nn.Module, *, levels: bool, **options: bool) -> CompiledModel:
    made = spyre_mlir.compile(model.eval(), (X,), **options)
    assert isinstance(made, CompiledModel)
    made.save(path, levels=levels)
    loaded = spyre_mlir.load(path)
    assert isinstance(loaded, CompiledModel)
    return loaded


def test_a_cure_is_tried_with_the_levels(tmp_path: Path) -> None:
    loaded = saved(tmp_path / "b", Growing(), levels=True)
    found = loaded.accuracy(X)
    wanted = Growing()(X.double()).detach().numpy()
    error = float(np.sqrt(((loaded(X).numpy() - wanted) ** 2).sum() / (wanted**2).sum()))
    assert found.worst == pytest.approx(error, rel=1e-3) and found.worst > 0.1
    kept = spyre_mlir.compile(Growing(), (X,), keep_float32=True)
    assert isinstance(kept, CompiledModel)
    tried = next(one for one in found.tried if one.change == "keep_float32=True")
    assert tried.helps and tried.error == pytest.approx(kept.accuracy(X).worst, abs=1e-6)
    assert (tried.us_before, tried.us) == (loaded.timeline().kernels_us, kept.timeline().kernels_us)
    text = str(found)
    assert text.startswith("RMS error against exact numerics: ")
    assert "try: compile with keep_float32=True" in text and str(tried) in text


def test_without_levels_the_cure_is_named_and_not_tried(tmp_path: Path) -> None:
    found = saved(tmp_path / "b", Growing(), levels=False).accuracy(X)
    assert found.tried == ()
    assert "try: compile with keep_float32=True" in str(found) and str(found).endswith(NO_LEVELS)


def test_a_product_is_not_cured_by_float32(tmp_path: Path) -> None:
    for levels in (True, False):
        found = saved(tmp_path / f"b{levels}", Growing(product=True), levels=levels).accuracy(X)
        assert "first in batchmatmul at test_stored.py:" in str(found)
        assert "try: scale down what grows before it" in str(found)


def test_what_keeps_float32_has_nothing_left_to_try(tmp_path: Path) -> None:
    found = saved(tmp_path / "b", Growing(), levels=True, keep_float32=True).accuracy(X)
    assert found.worst < 1e-6 and not found.is_spoilt and NO_LEVELS not in str(found)
