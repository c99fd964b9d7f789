"""What loops can save at most, and what they take at least."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from spyre_mlir.dialects.spyre.kernel import KernelOp
from spyre_mlir.hw.cost_parameters import CALIBRATED
from spyre_mlir.hw.spec import SPYRE
from spyre_mlir.planning.trips import TripSpan
from spyre_mlir.transforms.kernel_plans.group_loops import GroupLoops
from spyre_mlir.transforms.kernel_plans.group_prefixes import GroupPrefix
from spyre_mlir.transforms.kernel_plans.kernel_choices import KernelChoices
from spyre_mlir.transforms.kernel_plans.plan_record import PlanRecord
from spyre_mlir.transforms.kernel_plans.time_floors import TimeFloors
from spyre_mlir.transforms.kernel_plans.trials import InnerLoop, Trial
from tests.unit.transforms.kernel_plans.test_group_prefixes import softmax_group
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
