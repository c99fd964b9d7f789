"""Restickifies of plans run over whole buffers once all padding is known, with sticks that cores can share."""

from __future__ import annotations

import pytest

from spyre_mlir.hw.spec import SPYRE
from spyre_mlir.hw.sticks import UNIT
from spyre_mlir.transforms.loop_to_kernel.buffers import PlannedBuffer, PlannedKernel
from spyre_mlir.transforms.loop_to_kernel.emission import settled
from spyre_mlir.transforms.loop_to_kernel.layout_planner import LayoutPlanner
from spyre_mlir.transforms.loop_to_kernel.settling.equal_extents import lengthen, settle
from tests.unit.transforms.loop_to_kernel.planning import names, steps, tensor

DL16 = "SEN169_FP16"


def planned(*shape: int, to: int = 0) -> tuple[LayoutPlanner, PlannedBuffer, PlannedBuffer]:
    """A tensor laid out again: its last dimension was in the lanes."""
    p = LayoutPlanner()
    versions = p.of(tensor(*shape))
    versions.buffers.append(p.fresh(shape, DL16, len(shape) - 1))
    made = p.buffer(versions, to)
    return p, versions.buffers[0], made


def extents(step: PlannedKernel) -> dict[str, int]:
    return {d.name: d.extent for d in step.space}


def test_what_runs_over_all_stays() -> None:
    p, source, made = planned(33, 70)
    before = list(p.items)
    settle(p)
    assert p.items == before and source.layout.extents == made.layout.extents == (64, 128)


def test_padding_of_either_side_is_that_of_both() -> None:
    p, source, made = planned(5, 33, 70, to=1)
    source.pad(0, 3)
    made.pad(0, 2)
    settle(p)
    (step,) = steps(p)
    assert source.layout.extents == made.layout.extents == (6, 64, 128)
    assert extents(step) == {"d0": 6, "d1": 64, "d2": 128}
    assert step.inputs[0][1] == step.output[1] and step.inputs[0][0] is source and step.output[0] is made


def test_the_least_that_holds_both() -> None:
    p, source, made = planned(33, 70)
    made.reserve(0, 128)
    settle(p)
    assert source.layout.extents == made.layout.extents == (128, 128)


def test_loops_of_single_elements_are_left_out() -> None:
    p, source, _ = planned(1, 33, 70, to=1)
    source.pad(2, 3)  # 192: whole sticks, and multiples of 3
    settle(p)
    (step,) = steps(p)
    assert extents(step) == {"d1": 64, "d2": 192} and source.layout.extents == (1, 64, 192)
    assert [[n for n, _ in e.terms] for e in step.output[1]] == [[], ["d1"], ["d2"]]


def test_loops_of_two_elements_stay() -> None:
    p, source, _ = planned(2, 33, 70, to=1)
    source.pad(2, 3)
    settle(p)
    (step,) = steps(p)
    assert extents(step) == {"d0": 2, "d1": 64, "d2": 192}
    assert [[n for n, _ in e.terms] for e in step.output[1]] == [["d0"], ["d1"], ["d2"]]


def test_copies_of_a_sparse_form_are_a_loop_too() -> None:
    p, source, made = planned(33, 70, to=UNIT)
    source.pad(0, 2)
    settle(p)
    (step,) = steps(p)
    assert extents(step) == {"d0": 34, "d1": 128, "u": 64} and made.layout.extents == (34, 128)
    assert [d.name for d in step.space][-1] == "u"


def test_one_change_asks_for_the_next() -> None:
    """Two in a row: padding of the last reaches the first."""
    p, source, _ = planned(5, 64, 128, to=1)
    versions = p.of(tensor(5, 64, 128))
    versions.buffers.append(steps(p)[0].output[0])
    last = p.buffer(versions, 2)
    last.pad(0, 4)
    settle(p)
    assert [extents(s)["d0"] for s in steps(p)] == [8, 8] and source.layout.extents == (8, 64, 128)


def test_demands_that_do_not_go_together_make_a_copy() -> None:
    """Multiples of 30 and of 64 that hold 100 are 960, more than twice the tensor."""
    p, source, made = planned(100, 128)
    source.steps[0] = 30
    source.layout = source.layout.reserving(0, 120)
    settle(p)
    copy, step = steps(p)
    assert names(p) == ["identity", "restickify"]
    assert copy.inputs[0][0] is source and step.inputs[0][0] is copy.output[0] and step.output[0] is made
    assert source.layout.extents == (120, 128)
    assert copy.output[0].layout.extents == made.layout.extents == (128, 128)


def test_a_copy_has_room_for_copies_of_a_sparse_form() -> None:
    p, source, _ = planned(100, 128, to=UNIT)
    made = steps(p)[0].output[0]
    source.steps[0], made.steps[0] = 30, 64
    source.layout, made.layout = source.layout.reserving(0, 120), made.layout.reserving(0, 128)
    settle(p)
    copy, step = steps(p)
    assert copy.output[0].layout.unit_extent == 64 and extents(step) == {"d0": 128, "d1": 128, "u": 64}


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
