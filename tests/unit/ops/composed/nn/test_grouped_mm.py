"""Rows by the matrix of their group, against a loop over the groups."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import spyre_mlir
from spyre_mlir.machine.levels.aten import evaluate
from spyre_mlir.ops import ATEN

pytest.importorskip("transformers.integrations.moe")


def by_hand(rows: np.ndarray, matrices: np.ndarray, ends: list[int]) -> np.ndarray:
    wanted, start = np.zeros((len(rows), matrices.shape[2])), 0
    for matrix, end in zip(matrices, ends, strict=True):
        wanted[start:end] = rows[start:end] @ matrix
        start = end
    return wanted


@pytest.mark.parametrize("ends", [[2, 2, 5, 7], [0, 0, 0, 7], [1, 2, 3, 4], [7, 7, 7, 7]])
def test_meaning(ends: list[int]) -> None:
    rng = np.random.default_rng(1)
    rows, matrices = rng.normal(size=(7, 3)), rng.normal(size=(4, 3, 5))
    entry = ATEN.find("transformers::grouped_mm_fallback")
    assert entry is not None
    (got,) = evaluate(entry, {"input": rows, "weight": matrices, "offs": np.array(ends, np.int32)})
    np.testing.assert_allclose(got, by_hand(rows, matrices, ends), rtol=1e-12, atol=1e-12)


def test_every_level() -> None:
    class Experts(torch.nn.Module):
        def forward(self, rows: torch.Tensor, matrices: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
            return torch.ops.transformers.grouped_mm_fallback(rows, matrices, ends)

    rng = np.random.default_rng(2)
    rows, matrices = rng.normal(size=(70, 5)).astype(np.float32), rng.normal(size=(3, 5, 66)).astype(np.float32)
    ends = torch.tensor([9, 9, 65], dtype=torch.int32)
    inputs = (torch.from_numpy(rows), torch.from_numpy(matrices), ends)
    compiled = spyre_mlir.compile(Experts(), inputs)
    assert compiled.verify(*inputs)
    wanted = by_hand(rows, matrices, ends.tolist())
    assert np.abs(compiled(*inputs).numpy() - wanted).max() < 0.02 * np.abs(wanted).max()
