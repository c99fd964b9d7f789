"""Plans of launches: made once per file and addresses, and of no data."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace

import numpy as np
import pytest

from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor, Dim, OpClass, Operand
from spyre_mlir.errors import FaultKind, MachineFault
from spyre_mlir.machine.faults import FaultLog
from spyre_mlir.machine.memory.device_numerics import DeviceMemory
from spyre_mlir.machine.memory.exact import ExactMemory, Memory
from spyre_mlir.machine.superdsc.launch_plans import LaunchPlan, LaunchPlans, make_plan
from spyre_mlir.machine.superdsc.run import execute

DL16, FP32, INT32 = "SEN169_FP16", "IEEE_FP32", "IEEE_INT32"
DIMS = (Dim("mb", 4, 2), Dim("out", 64))
AT_0_AND_4 = {-1: 0, -2: 256, -3: 512, -4: 768}
AT_0_AND_8 = {-1: 0, -2: 256, -3: 1024, -4: 1280}


def negation(component: str = "hbm") -> Descriptor:
    """Negates four rows of a stick on two cores, with an address per core."""
    rows = 2 if component == "lx" else 4
    operands = tuple(
        Operand(("out", "mb"), (64, rows), "out", DL16, start, symbolic=True, component=component)
        for start in (("-1", "-2"), ("-3", "-4"))
    )
    return Descriptor(0, "neg", "sfp", OpClass.POINTWISE, DIMS, operands)


def memory(first: float = 0.0) -> Memory:
    """Sixteen sticks, of which the first four hold numbers from `first` on."""
    made = ExactMemory()
    made.add_region("HBM", 0, 16 * 128)
    made.store(2 * np.arange(256), first + np.arange(256), DL16)
    return made


def result(of: Memory, at: int) -> list[float]:
    values, written = of.load(at + 2 * np.arange(256), DL16)
    assert written.all()
    return values.tolist()


def no_plan() -> LaunchPlan | None:
    raise AssertionError("made again")


def test_a_plan_serves_other_memory_with_other_data() -> None:
    plans, view = LaunchPlans(), negation()
    execute(view, memory(), AT_0_AND_4, plans=plans)
    other = memory(1000)
    assert plans.plan(view, other, AT_0_AND_4, no_plan) is not None
    execute(view, other, AT_0_AND_4, plans=plans)
    assert result(other, 512) == [-1000.0 - n for n in range(256)]


def test_other_addresses_have_a_plan_of_their_own() -> None:
    plans, view, one = LaunchPlans(), negation(), memory()
    execute(view, one, AT_0_AND_4, plans=plans)
    with pytest.raises(AssertionError, match="made again"):
        plans.plan(view, one, AT_0_AND_8, no_plan)
    execute(view, one, AT_0_AND_8, plans=plans)
    assert result(one, 1024) == [0.0 - n for n in range(256)]


def test_an_equal_file_that_is_another_has_a_plan_of_its_own() -> None:
    # Slices take no part in the comparison of descriptors.
    swapped = replace(negation(), slices=({"mb": 1, "out": 0}, {"mb": 0, "out": 0}))
    plans, one = LaunchPlans(), memory()
    execute(negation(), one, AT_0_AND_4, plans=plans)
    assert swapped == negation()
    with pytest.raises(AssertionError, match="made again"):
        plans.plan(swapped, one, AT_0_AND_4, no_plan)


@pytest.mark.usefixtures("only_new_garbage")
def test_a_plan_keeps_no_memory() -> None:
    plans, one = LaunchPlans(), memory()
    execute(negation(), one, AT_0_AND_4, plans=plans)
    gone = weakref.ref(one)
    del one
    gc.collect()
    assert gone() is None


def test_a_launch_with_a_fault_meets_it_every_time() -> None:
    plans, view = LaunchPlans(), negation()
    racing = {-1: 0, -2: 256, -3: 128, -4: 384}
    for _ in range(2):
        one = memory()
        one.log = FaultLog("collect")
        execute(view, one, racing, plans=plans)
        assert [met.kind for met in one.log.faults] == [FaultKind.READ_WRITE_RACE]


@pytest.mark.parametrize("again", [False, True])
def test_what_depends_on_data_is_checked_at_every_launch(again: bool) -> None:
    plans, view = LaunchPlans(), negation()
    if again:
        execute(view, memory(), AT_0_AND_4, plans=plans)
    empty = ExactMemory()
    empty.add_region("HBM", 0, 16 * 128)
    with pytest.raises(MachineFault) as caught:
        execute(view, empty, AT_0_AND_4, plans=plans)
    assert caught.value.kind == FaultKind.UNINITIALISED_READ


def test_a_planned_launch_in_scratchpads_finds_them_in_new_memory() -> None:
    plans, view, starts = LaunchPlans(), negation("lx"), {-1: 0, -2: 0, -3: 512, -4: 512}
    for _ in range(2):
        one = memory()
        one.log = FaultLog("collect")
        execute(view, one, starts, plans=plans)
        # Scratchpads are there, and hold nothing.
        assert {met.kind for met in one.log.faults} == {FaultKind.STALE_READ, FaultKind.UNINITIALISED_READ}


def test_whether_partial_sums_are_wide_makes_another_plan() -> None:
    dims = (Dim("mb", 4, 2), Dim("out", 64))
    source = Operand(("out", "mb"), (64, 4), "out", DL16, ("0", "256"))
    target = Operand(("out",), (64,), "out", DL16, ("1024", "1024"))
    view = Descriptor(0, "sum", "sfp", OpClass.REDUCTION, dims, (source, target))
    plans, one = LaunchPlans(), memory()
    for wide in (True, False):
        one.partial_sums_are_wide = wide
        plan = plans.plan(view, one, None, lambda: make_plan(view, one, None))
        assert plan is not None
        assert (plan.whole is not None) == wide
        assert len(plan.by_core) == (0 if wide else 2)


def test_a_plan_knows_where_it_works() -> None:
    plan = make_plan(negation(), memory(), AT_0_AND_4)
    assert (plan.name, plan.picks, plan.in_scratchpads, plan.in_place) == ("0:neg", False, False, False)
    same = make_plan(negation(), memory(), {-1: 0, -2: 256, -3: 0, -4: 256})
    assert same.in_place


# Among them the words of infinity, of a NaN that signals and of one that is quiet, and a float that is no normal one.
WORDS = np.resize(np.array([0x7F800000, 0x7F800001, -1, 0x7FFFFFFF, -(2**31), 1, 0, 12345]), 128)


def labelled_as_floats(function: str) -> Descriptor:
    """Four rows of a stick of 32-bit numbers, on two cores."""
    operands = tuple(
        Operand(("out", "mb"), (32, 4), "out", FP32, start, symbolic=True) for start in (("-1", "-2"), ("-3", "-4"))
    )
    return Descriptor(0, function, "sfp", OpClass.POINTWISE, (Dim("mb", 4, 2), Dim("out", 32)), operands)


@pytest.mark.parametrize("kind", [ExactMemory, DeviceMemory])
def test_a_copy_labelled_as_floats_moves_the_bits_of_integers(kind: type[Memory]) -> None:
    """As torch-spyre writes copies of 32-bit integers."""
    one, plans = kind(), LaunchPlans()
    one.nan_is_a_fault = True
    one.add_region("HBM", 0, 16 * 128)
    one.store(4 * np.arange(128), WORDS, INT32)
    for _ in range(2):
        execute(labelled_as_floats("identity"), one, AT_0_AND_4, plans=plans)
    values, written = one.load(512 + 4 * np.arange(128), INT32)
    assert written.all()
    assert values.tolist() == WORDS.tolist()


@pytest.mark.parametrize("kind", [ExactMemory, DeviceMemory])
def test_a_copy_labelled_as_floats_is_one_of_floats_where_those_are(kind: type[Memory]) -> None:
    one = kind()
    one.add_region("HBM", 0, 16 * 128)
    one.store(4 * np.arange(128), np.arange(128) / 4, FP32)
    execute(labelled_as_floats("identity"), one, AT_0_AND_4)
    assert one.load(512 + 4 * np.arange(128), FP32)[0].tolist() == [n / 4 for n in range(128)]


def test_what_computes_on_floats_takes_no_integers() -> None:
    one = ExactMemory()
    one.add_region("HBM", 0, 16 * 128)
    one.store(4 * np.arange(128), WORDS, INT32)
    with pytest.raises(MachineFault) as caught:
        execute(labelled_as_floats("neg"), one, AT_0_AND_4)
    assert caught.value.kind == FaultKind.WRONG_FORMAT
