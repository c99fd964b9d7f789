"""What loops can save at most, and what they take at least."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from spyre_mlir.dialects.spyre.kernel import KernelOp
from spyre_mlir.hw.cost_parameters import CALIBRATED
from spyre_mlir.hw.spec import SPYRE
from spyre_mlir.planning.trips import TripSpan
from spyre_mlir.transforms.kernel_loops.group_loops import GroupLoops
from spyre_mlir.transforms.kernel_loops.group_prefixes import GroupPrefix
from spyre_mlir.transforms.kernel_loops.time_floors import TimeFloors
from spyre_mlir.transforms.kernel_loops.trials import InnerLoop, Trial
from spyre_mlir.transforms.kernel_plans.kernel_choices import KernelChoices
from spyre_mlir.transforms.kernel_plans.plan_record import PlanRecord
from tests.unit.transforms.kernel_loops.test_group_prefixes import softmax_group
from tests.unit.transforms.kernel_loops.test_repeated_copies import experts
from tests.unit.transforms.levels import ops, passed
from tests.unit.transforms.test_place_lx import softmax


def test_what_kernels_from_one_on_may_save() -> None:
    """Kernels that take longer than their floors by 1, 2, 0 and 4 us, and one that takes less than its floor."""
    found = ops(passed(softmax(8192, 1024), "divide-work"), KernelOp)
    floors = TimeFloors(KernelChoices(SPYRE))
    inside = {op.output for op in found[:-1]}
    longer = (1.0, 2.0, 0.0, 4.0, -0.5)
    times = [floors.us([op], inside) + more for op, more in zip(found, longer, strict=True)]
    assert floors.hopes_us(found, times, inside) == pytest.approx([7.0, 6.0, 4.0, 4.0, 0.0])


def test_no_division_in_trips_beats_the_time_by_the_trip() -> None:
    """Each iteration of a loop costs, and a kernel takes at least so long in a trip; held operands cost nothing."""
    group = softmax_group()
    prefix = GroupPrefix(group, TimeFloors(KernelChoices(SPYRE)))
    prefix.extend(len(group.ops))
    inner, least = InnerLoop(2, ["n"] * len(group.ops)), list[float]()
    for trips, within in ((4, None), (8, None), (8, inner)):
        held = tuple(prefix.held)
        trial = Trial(group, (TripSpan.of_all(trips),), within, 1000.0, 0.0, held=held)
        priced = prefix.floors.priced(trial)
        us = GroupLoops(KernelChoices(SPYRE), PlanRecord()).us(trial, inf)
        assert trial.least_us < priced.least_us and priced.held == ()
        assert us is None or priced.least_us <= us
        assert prefix.floors.priced(replace(trial, held=(frozenset(),) * len(held))).least_us > priced.least_us
        least.append(priced.least_us)
    assert least == sorted(least) and least[1] - least[0] > 4 * CALIBRATED.trip_fixed_us * 0.99


def test_a_copy_that_loops_leave_out_may_take_no_time() -> None:
    """A loop over the matrices needs no copy of x for each of them; whatever else runs has the floor of its choices."""
    copy, product, relu = ops(experts(), KernelOp)
    choices, none = KernelChoices(SPYRE), frozenset[int]()
    floors = TimeFloors(choices)
    assert choices.floor_us(copy, none) > 0 and choices.trip_floor_us(copy, {"a": 4}, none) > 0
    assert floors.kernel_us(copy, none) == floors.trip_us(copy, {"a": 4}, none) == 0
    for op, loop in ((product, "e"), (relu, "a")):
        assert floors.kernel_us(op, none) == choices.floor_us(op, none) > 0
        assert floors.trip_us(op, {loop: 4}, none) == choices.trip_floor_us(op, {loop: 4}, none) > 0
    assert floors.us([copy, product], ()) == floors.kernel_us(product, none)


@pytest.mark.parametrize(("inner", "trips"), [(1, 8), (2, 16)])
def test_every_trip_takes_the_time_of_its_kernels_and_its_own(
    inner: int, trips: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five kernels of 2 us a trip."""
    monkeypatch.setattr(KernelChoices, "trip_floor_us", lambda *_: 2.0)
    group = softmax_group()
    within = None if inner == 1 else InnerLoop(inner, ["n"] * len(group.ops))
    held = (frozenset[int](),) * len(group.ops)
    trial = Trial(group, (TripSpan.of_all(8),), within, 1000.0, 0.0, held=held)
    floors = TimeFloors(KernelChoices(SPYRE))
    assert floors.priced(trial).least_us == pytest.approx(trips * (10.0 + CALIBRATED.trip_fixed_us))
    assert floors.priced(replace(trial, least_us=500.0)).least_us == 500.0
