"""Rows by the matrix of their group, against a loop over the groups."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import spyre_mlir
from spyre_mlir.dialects.spyre.loop import NestOp
from spyre_mlir.frontend import import_program
from spyre_mlir.machine.levels.aten import evaluate
from spyre_mlir.machine.levels.run import run_function
from spyre_mlir.ops import ATEN
from spyre_mlir.pipeline import lower
from spyre_mlir.transforms.utils.nests.contractions import is_contraction
from spyre_mlir.universe import make_context

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


@pytest.mark.parametrize(("most", "sums"), [(4 * 35, 1), (4 * 35 - 1, 4), (1, 4)])
def test_large_products_are_added_up_some_groups_at_a_time(
    most: int, sums: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four groups whose products have 35 elements each; half of the most at a time, or one group."""
    monkeypatch.setattr("spyre_mlir.ops.composed.nn.grouped_mm._MOST_PRODUCTS", most)
    rng = np.random.default_rng(3)
    inputs = (torch.from_numpy(rng.normal(size=(7, 3))), torch.from_numpy(rng.normal(size=(4, 3, 5))))
    ends = torch.tensor([2, 2, 5, 7], dtype=torch.int32)
    module = import_program(Experts(), (*(x.float() for x in inputs), ends)).module
    loops = lower(module, make_context(), until="spyre.loop").modules["spyre.loop"]
    nests = [op for op in loops.walk() if isinstance(op, NestOp)]
    assert sum(is_contraction(op) for op in nests) == sums
    rows, matrices = (x.numpy() for x in inputs)
    (got,) = run_function(loops, [rows, matrices, ends.numpy()])
    np.testing.assert_allclose(got, by_hand(rows, matrices, ends.tolist()), rtol=1e-5, atol=1e-5)


def test_experts_of_real_models_are_on_the_device() -> None:
    """OLMoE's 64, for 512 tokens that take eight each."""
    shapes = (4096, 2048), (64, 2048, 4096)
    inputs = tuple(torch.empty(shape, dtype=torch.float16, device="meta") for shape in shapes)
    module = import_program(Experts(), (*inputs, torch.empty(64, dtype=torch.int32, device="meta"))).module
    assert lower(module, make_context()).host_steps == ()


class Experts(torch.nn.Module):
    def forward(self, rows: torch.Tensor, matrices: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
        return torch.ops.transformers.grouped_mm_fallback(rows, matrices, ends)


def test_every_level() -> None:
    rng = np.random.default_rng(2)
    rows, matrices = rng.normal(size=(70, 5)).astype(np.float32), rng.normal(size=(3, 5, 66)).astype(np.float32)
    ends = torch.tensor([9, 9, 65], dtype=torch.int32)
    inputs = (torch.from_numpy(rows), torch.from_numpy(matrices), ends)
    compiled = spyre_mlir.compile(Experts(), inputs)
    assert compiled.verify(*inputs)
    wanted = by_hand(rows, matrices, ends.tolist())
    assert np.abs(compiled(*inputs).numpy() - wanted).max() < 0.02 * np.abs(wanted).max()
