"""Restickifies have as many sticks as cores can share."""

from __future__ import annotations

import pytest

from spyre_mlir.hw.spec import SPYRE
from spyre_mlir.hw.sticks import UNIT
from spyre_mlir.transforms.loop_to_kernel.buffers import PlannedBuffer
from spyre_mlir.transforms.loop_to_kernel.divisible_extents import lengthen
from spyre_mlir.transforms.loop_to_kernel.emission import settled
from spyre_mlir.transforms.loop_to_kernel.equal_extents import settle
from spyre_mlir.transforms.loop_to_kernel.layout_planner import LayoutPlanner
from tests.unit.transforms.loop_to_kernel.planning import steps, tensor

DL16 = "SEN169_FP16"


def planned(*shape: int, to: int = 0) -> tuple[LayoutPlanner, PlannedBuffer, PlannedBuffer]:
    """A tensor laid out again: its last dimension was in the lanes."""
    p = LayoutPlanner()
    versions = p.of(tensor(*shape))
    versions.buffers.append(p.fresh(shape, DL16, len(shape) - 1))
    made = p.buffer(versions, to)
    settle(p)
    return p, versions.buffers[0], made


def test_sticks_without_divisors_get_more() -> None:
    """47 by 2 sticks are moved by two cores, 48 by 2 by 32."""
    p, source, made = planned(3000, 128)
    settled(p, SPYRE)
    assert source.layout.extents == made.layout.extents == (48 * 64, 128)
    (step,) = steps(p)
    assert {d.name: d.extent for d in step.space} == {"d0": 48 * 64, "d1": 128}


@pytest.mark.parametrize("shape", [(64 * 32, 128), (64 * 3, 64), (64 * 30, 64), (32, 64 * 31, 64)])
def test_what_gains_little_stays(shape: tuple[int, ...]) -> None:
    """Enough cores already, or no more within an eighth."""
    p, source, _ = planned(*shape, to=len(shape) - 2)
    before = source.layout.extents
    assert not lengthen(p, SPYRE) and source.layout.extents == before


def test_a_buffer_without_room_stays() -> None:
    p, source, made = planned(3000, 128)
    source.fixed = True
    assert not lengthen(p, SPYRE) and made.layout.extents == (3008, 128)


def test_sparse_forms_stay() -> None:
    p, source, made = planned(3000, 128, to=UNIT)
    assert not lengthen(p, SPYRE) and source.layout.extents == made.layout.extents
