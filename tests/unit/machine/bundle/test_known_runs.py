"""Runs whose states of memory are known: they compute the same, and still find what is wrong."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor, Dim, OpClass, Operand
from spyre_mlir.errors import FaultKind, MachineFault
from spyre_mlir.machine.bundle.known_runs import KnownRun
from spyre_mlir.machine.bundle.program_plans import ProgramPlans
from spyre_mlir.machine.bundle.run import run_bundle
from spyre_mlir.machine.levels.run import find_function
from spyre_mlir.machine.memory.device_numerics import DeviceMemory
from spyre_mlir.machine.memory.exact import ExactMemory, Memory
from spyre_mlir.machine.memory.shadow import ShadowMemory
from tests.unit.machine.bundle.host_programs import BASES, DL16, POOL, bundle, memory, negation, numbers
from tests.unit.machine.modules import parse

FOUR = (1 << 20, 2 << 20, 3 << 20, 4 << 20)
ALL = 2 * np.arange(256)
LANES = 8  # of each stick that are no padding


@pytest.fixture
def blind(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Lets the test forbid every look at a state by a launch."""
    return monkeypatch


def forbid_states(patch: pytest.MonkeyPatch) -> None:
    def looked(*_: object, **__: object) -> None:
        raise AssertionError("a launch has looked at states")

    patch.setattr(ShadowMemory, "read", looked)
    patch.setattr(ShadowMemory, "write", looked)


def test_a_known_run_asks_no_states_and_leaves_the_same(blind: pytest.MonkeyPatch) -> None:
    module, plans, view = parse(POOL), ProgramPlans(), negation("-1 -2", "-3 -4")
    first, second = memory(), memory()
    second.store(BASES[0] + ALL, 2 * numbers().reshape(-1), DL16)
    run_bundle(module, first, BASES, lambda _: view, plans=plans)
    with blind.context() as patch:
        forbid_states(patch)
        run_bundle(module, second, BASES, lambda _: view, plans=plans)
    assert second.step == first.step == 2
    for one, other in zip(first.regions, second.regions, strict=True):
        assert one.states.equals(other.states)
    values, written = second.load(BASES[1] + ALL, DL16)
    assert values.tolist() == (2 * numbers()).reshape(-1).tolist() and written.all()


def test_memory_that_was_not_written_is_still_found() -> None:
    module, plans, view = parse(bundle()), ProgramPlans(), negation("-1 -2", "-3 -4")
    run_bundle(module, memory(), BASES, lambda _: view, plans=plans)
    holed = memory()
    region = holed.regions[0]
    region.states.known[1], region.states.tags[1] = 0, 0
    with pytest.raises(MachineFault) as caught:
        run_bundle(module, holed, BASES, lambda _: view, plans=plans)
    assert caught.value.kind == FaultKind.UNINITIALISED_READ


def where() -> Descriptor:
    """Chooses between four rows of a stick on two cores."""
    dims = (Dim("mb", 4, 2), Dim("out", 64))
    starts = [("-1", "-2"), ("-3", "-4"), ("-5", "-6"), ("-7", "-8")]
    operands = tuple(Operand(("mb", "out"), (4, 64), "out", DL16, start, symbolic=True) for start in starts)
    return Descriptor(0, "where3", "sfp", OpClass.POINTWISE, dims, operands)


def choosing(condition: npt.NDArray[np.float64]) -> Memory:
    """A condition per lane, an operand of which the first lanes are written, one that is written, and a result."""
    made = ExactMemory()
    for base in FOUR:
        made.add_region(f"at {base}", base, 512)
    lanes = (128 * np.arange(4)[:, None] + 2 * np.arange(64)).reshape(-1)
    few = (128 * np.arange(4)[:, None] + 2 * np.arange(LANES)).reshape(-1)
    made.store(FOUR[0] + lanes, np.tile(condition, 4), DL16)
    made.store(FOUR[1] + few, np.full(few.size, 3.0), DL16)
    made.store(FOUR[2] + lanes, np.full(lanes.size, 5.0), DL16)
    return made


def outcome(card: Memory) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    values, written = card.load(FOUR[3] + 2 * np.arange(64), DL16)
    return np.where(written, values, 0.0), written


def test_a_choice_that_leaves_others_written_runs_with_states(blind: pytest.MonkeyPatch) -> None:
    module, plans, view = parse(bundle(4)), ProgramPlans(), where()
    some, none, beyond = np.zeros(64), np.zeros(64), np.zeros(64)
    some[:2], beyond[[0, 20]] = 1.0, 1.0
    expected = {"some": [3.0, 3.0, *[5.0] * 62], "none": [5.0] * 64, "beyond": [3.0, *[5.0] * 19, 0.0, *[5.0] * 43]}
    for name, condition in (("some", some), ("none", none), ("beyond", beyond), ("none", none)):
        card = choosing(condition)
        with blind.context() as patch:
            if name == "none":
                forbid_states(patch)  # other numbers, and the same states as in the first run
            run_bundle(module, card, FOUR, lambda _: view, plans=plans)
        values, written = outcome(card)
        assert values.tolist() == expected[name]
        assert written.tolist() == [not (name == "beyond" and lane == 20) for lane in range(64)]
        assert card.step == 1


def test_padding_that_is_too_large_does_not_count_in_a_known_run() -> None:
    module, plans, view = parse(bundle()), ProgramPlans(), negation("-1 -2", "-3 -4")
    counts: list[int] = []
    for large in (1.0, 1e10, 1e10):
        card = DeviceMemory()
        for base in BASES:
            card.add_region(f"at {base}", base, 512)
        lanes = (128 * np.arange(4)[:, None] + 2 * np.arange(LANES)).reshape(-1)
        card.store(BASES[0] + lanes, np.full(lanes.size, 1.0), DL16)
        cells = card.regions[0].cells.view(np.float32).reshape(4, 64)
        cells[:, LANES:], cells[0, 0] = large, large
        run_bundle(module, card, BASES, lambda _: view, plans=plans)
        counts.append(sum(met.count for met in card.log.overflows.values()))
    assert counts == [0, 1, 1]


def test_sticks_that_are_read_before_they_are_written_are_cleared() -> None:
    card = memory()
    card.regions[1].cells.fill(1)
    pads = np.zeros(card.spec.cores_per_card * card.spec.lx_bytes // 128, np.bool_)
    pads[3] = True
    known = KnownRun(0, (), (), {}, {BASES[1]: np.array([1, 3])}, pads)
    assert known.again(card, lambda _: 0)
    rows = card.regions[1].cells.reshape(4, -1)
    assert rows.any(axis=1).tolist() == [True, False, True, False]
    card.forget_scratchpads()
    left = [dirty for kept in card.spare.values() for _, dirty in kept if dirty is not None]
    assert [np.flatnonzero(dirty).tolist() for dirty in left] == [[3]]


@pytest.mark.parametrize("written", [False, True])
def test_a_choice_is_not_kept_with_a_result_over_what_was_there(written: bool) -> None:
    module, plans, view = parse(bundle(4)), ProgramPlans(), where()

    def card() -> Memory:
        made = choosing(np.zeros(64))
        if written:
            made.store(FOUR[3] + 2 * np.arange(64), np.ones(64), DL16)
        return made

    run_bundle(module, first := card(), FOUR, lambda _: view, plans=plans)
    assert outcome(first)[0].tolist() == [5.0] * 64
    kept = plans.known_runs(find_function(module, "sdsc_bundle"), (*FOUR, first.free), card())
    assert bool(kept) is not written
