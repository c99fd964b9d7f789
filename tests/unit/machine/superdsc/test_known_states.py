"""Which launches depend on numbers in what they leave written."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor, Dim, OpClass, Operand
from spyre_mlir.errors import FaultKind, MachineFault
from spyre_mlir.machine.faults import Standing
from spyre_mlir.machine.memory.exact import ExactMemory, Memory
from spyre_mlir.machine.superdsc.known_states import KnownLaunch, StatesDiffer, note
from spyre_mlir.machine.superdsc.launch_plans import make_plan
from spyre_mlir.machine.superdsc.stale_reads import History

DL16 = "SEN169_FP16"
STICK = 128


def view(function: str, inputs: int) -> Descriptor:
    """A function of one stick, with operands at 0, 128, …."""
    dims = (Dim("mb", 1), Dim("out", 64))
    operands = [Operand(("mb", "out"), (1, 64), "out", DL16, (str(n * STICK),)) for n in range(inputs + 1)]
    return Descriptor(0, function, "sfp", OpClass.POINTWISE, dims, tuple(operands))


def card(*lanes: int) -> Memory:
    """Memory in which each operand has some lanes written, with its number."""
    made = ExactMemory()
    made.add_region("all", 0, (len(lanes) + 1) * STICK)
    for number, count in enumerate(lanes):
        made.store(number * STICK + 2 * np.arange(count), np.full(count, float(number)), DL16)
    made.step = 1
    return made


@pytest.mark.parametrize(
    ("function", "lanes", "chosen"),
    [("add", (64, 8), False), ("where3", (64, 64, 64), False), ("where3", (64, 8, 64), True)],
)
def test_only_a_choice_of_what_is_partly_written_depends_on_numbers(
    function: str, lanes: tuple[int, ...], chosen: bool
) -> None:
    past, memory = History(), card(*lanes)
    note(past, make_plan(view(function, len(lanes)), memory, None), memory)
    assert past.repeatable
    assert list(past.chosen) == ([1] if chosen else [])


def test_a_masked_choice_and_cores_by_themselves_are_not_repeated() -> None:
    memory = card(64, 8, 64)
    masked = view("where3", 3)
    masked = replace(masked, dims=(masked.dims[0], replace(masked.dims[1], valid=8)), mask_constant=0)
    for plan in (make_plan(masked, memory, None), replace(make_plan(view("add", 2), memory, None), whole=None)):
        past = History()
        note(past, plan, memory)
        assert not past.repeatable


def launch(function: str, inputs: int, chosen: int) -> KnownLaunch:
    """A launch whose second operand had a number of lanes written when it was noted."""
    written = (np.arange(64) < chosen)[None]
    plan = make_plan(view(function, inputs), card(64, 64, 64), None)
    return KnownLaunch(
        plan, Standing("sdsc_0.json", "superdsc"), True, np.ones((1, 64), np.bool_), [None, written, None]
    )


def test_a_choice_of_other_elements_stops_before_it_writes() -> None:
    known, memory = launch("where3", 3, 8), card(64, 64, 64, 64)
    memory.tracked = False
    known.run(memory)  # the condition is 0 everywhere
    assert memory.load(3 * STICK + 2 * np.arange(64), DL16)[0].tolist() == [2.0] * 64
    memory.store(2 * np.arange(64), np.ones(64), DL16)
    with pytest.raises(StatesDiffer):
        known.run(memory)
    assert memory.load(3 * STICK + 2 * np.arange(64), DL16)[0].tolist() == [2.0] * 64


def test_numbers_are_checked_in_a_known_launch() -> None:
    plan = make_plan(view("realdiv", 2), card(64, 64), None)
    known, memory = KnownLaunch(plan, Standing("sdsc_0.json", "superdsc"), False, None), card(64, 64)
    memory.tracked, memory.nan_is_a_fault = False, True
    memory.store(STICK + 2 * np.arange(64), np.zeros(64), DL16)
    with np.errstate(all="ignore"), pytest.raises(MachineFault) as caught:
        known.run(memory)
    assert caught.value.kind == FaultKind.NAN_BORN
    assert memory.log.standing == known.standing
