"""The least that a core has to reach: by pencil and paper, and before thousands of layouts are tried."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn import functional
from xdsl.dialects.builtin import FloatAttr, f64

import spyre_mlir
from spyre_mlir.dialects.spyre.attributes import IterDim
from spyre_mlir.hw.formats import DL16
from spyre_mlir.hw.spec import spec_with
from spyre_mlir.hw.sticks import LinearExpr, StickLayout
from spyre_mlir.ops.native import contractions
from spyre_mlir.transforms.loop_to_kernel import reachable_layouts
from spyre_mlir.transforms.loop_to_kernel.buffers import PlannedBuffer, PlannedKernel
from spyre_mlir.transforms.loop_to_kernel.reach_bound import may_come_within_reach
from tests.functions import FunctionModel


def step(function: str, loops: dict[str, int], *operands: str) -> PlannedKernel:
    """A step whose operands have one dimension per letter, the last of them in the lanes."""
    uses = list[Any]()
    for letters in operands:
        shape = tuple(loops[letter] for letter in letters)
        layout = StickLayout.published(shape, len(shape) - 1, DL16.elements_per_stick())
        buffer = PlannedBuffer(shape, DL16.name, layout, constant=FloatAttr(0.0, f64))
        uses.append((buffer, tuple(LinearExpr.of(letter) for letter in letters)))
    space = tuple(IterDim(name, extent) for name, extent in loops.items())
    return PlannedKernel(function, space, uses[:-1], uses[-1], None)


@pytest.mark.parametrize(
    ("made", "cores", "sticks"),
    [
        (step("exp", {"i": 65, "j": 64}, "ij", "ij"), 32, 3),  # rows of a stick: 65 over 32 cores
        (
            step("exp", {"i": 65, "j": 128}, "ij", "ij"),
            32,
            5,
        ),  # two sticks a row: 65 rows over 16 cores, a column for each
        (step("sum", {"i": 8, "j": 640}, "ij", "i"), 32, 10),  # a sum stays on its core
        (step("exp", {"i": 8, "j": 640}, "ij", "ij"), 1, 80),
        # The sum over 32 cores leaves each 32 rows of the right operand.
        (step(contractions.matmul.opfunc, {"i": 2, "j": 64, "k": 1024}, "ik", "kj", "ij"), 32, 32),
    ],
)
def test_the_least_of_the_largest_operand(made: PlannedKernel, cores: int, sticks: int) -> None:
    def within(reach: int) -> bool:
        return may_come_within_reach(made, spec_with({"cores_per_card": cores, "span_bytes": reach * 128}))

    assert within(sticks)
    assert not within(sticks - 1)


def test_a_dimension_that_a_loop_shares_bounds_nothing() -> None:
    """A diagonal of 64 rows touches as few sticks as its lanes tell, and nothing is claimed of it."""
    made = step("exp", {"i": 64}, "ii", "i")
    assert may_come_within_reach(made, spec_with({"span_bytes": 128}))


def test_layouts_are_not_tried_in_vain(monkeypatch: pytest.MonkeyPatch) -> None:
    tried, judged = list[PlannedKernel](), reachable_layouts._cores

    def counted(made: PlannedKernel, spec: Any) -> int | None:
        tried.append(made)
        assert len(tried) < 1000  # without the bound 60,000
        return judged(made, spec)

    monkeypatch.setattr(reachable_layouts, "_cores", counted)

    def attend(q: torch.Tensor) -> torch.Tensor:
        return functional.scaled_dot_product_attention(q, q, q)

    spec = spec_with({"span_bytes": 1024})
    spyre_mlir.compile(FunctionModel(attend), (torch.zeros(1, 2, 65, 64),), spec=spec, host_fallback="allow")
    assert tried
