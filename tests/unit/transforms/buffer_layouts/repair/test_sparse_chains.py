"""Numbers of rows between reductions and the rows that they go to."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from xdsl.dialects.builtin import ModuleOp

import spyre_mlir
from spyre_mlir.dialects.spyre.kernel import ComputeOp, RestickifyOp, device_tensor
from spyre_mlir.frontend import import_program
from spyre_mlir.hw.sticks import UNIT
from spyre_mlir.pipeline import LEVELS, lower
from spyre_mlir.transforms.buffer_layouts.repair import search
from spyre_mlir.universe import make_context
from tests.unit.transforms.levels import ops


class RunningSoftmax(nn.Module):
    """Attention to two blocks of keys, the second of which changes what the first one has summed up."""

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """One call."""
        half = key.shape[-2] // 2
        first, second = (query @ key[..., part, :].transpose(-1, -2) for part in (slice(half), slice(half, None)))
        peak = first.amax(-1, keepdim=True)
        weights = (first - peak).exp()
        total, out = weights.sum(-1, keepdim=True), weights @ value[..., :half, :]
        highest = second.amax(-1, keepdim=True)
        factor = (peak - highest).clamp_max(0.0).exp()
        peak = torch.maximum(peak, highest)
        weights = (second - peak).exp()
        total = total * factor + weights.sum(-1, keepdim=True)
        out = out * factor + weights @ value[..., half:, :]
        return out / total


class ManySteps(nn.Module):
    """Steps on sums of rows that are the result, so that nothing needs one of them per stick."""

    def forward(self, x: Tensor) -> Tensor:
        """One call."""
        x = x.sum(-1)
        for _ in range(8):
            x = x.sin().cos()
        return x


def kernels(model: nn.Module, *shapes: tuple[int, ...]) -> ModuleOp:
    """A model in half precision as kernels."""
    inputs = tuple(torch.zeros(shape, dtype=torch.float16, device="meta") for shape in shapes)
    return lower(import_program(model, inputs).module, make_context(), until=LEVELS[2]).modules[LEVELS[2]]


def chain(module: ModuleOp) -> list[bool]:
    """Whether what is computed of numbers of rows has one element per stick."""
    steps = [op for op in ops(module, ComputeOp) if op.function_name in STEPS]
    results = [device_tensor(op.operands[-1]).layout for op in steps]
    return [r.stick == UNIT for r in results if r.extents[-1] == 1 or len(r.extents) == 1]


SIZES = [(8, 1024, 128)] * 3
STEPS = {"maximum", "minimum", "add", "mul", "sin", "cos"}


def test_steps_between_reductions_and_rows_stay_as_reductions_leave_them() -> None:
    module = kernels(RunningSoftmax(), *SIZES)
    assert all(chain(module)) and chain(module)
    assert not [op for op in ops(module, RestickifyOp) if UNIT in {device_tensor(v).layout.stick for v in op.operands}]


def test_without_the_trial_they_change_back_and_forth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "sparse_chains", lambda _: {})
    assert not all(chain(kernels(RunningSoftmax(), *SIZES)))


def test_steps_that_nothing_reads_so_are_in_the_lanes() -> None:
    """65,536 sums: one change of layout, and then 1,024 sticks instead of 65,536."""
    assert not any(chain(kernels(ManySteps(), (65536, 128))))


def test_every_level_is_eager() -> None:
    torch.manual_seed(0)
    inputs = tuple(torch.randn(2, 128, 64) for _ in range(3))
    assert spyre_mlir.compile(RunningSoftmax(), inputs).verify(*inputs)
