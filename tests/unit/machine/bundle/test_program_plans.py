"""What is kept of a program's launches: for which arguments, and for how many."""

from __future__ import annotations

import pytest
from xdsl.dialects.func import FuncOp
from xdsl.interpreter import Interpreter

from spyre_mlir.errors import MachineFault
from spyre_mlir.machine.bundle.known_runs import KnownRun
from spyre_mlir.machine.bundle.launch_trace import BoundLaunch, PoolAllocation
from spyre_mlir.machine.bundle.program_plans import ProgramPlans
from spyre_mlir.machine.bundle.run import run_bundle
from spyre_mlir.machine.levels.run import find_function
from spyre_mlir.machine.memory.exact import ExactMemory
from tests.unit.machine.bundle.host_programs import BASES, POOL, bundle, memory, negation
from tests.unit.machine.modules import parse


def forbidden(*_: object) -> None:
    raise AssertionError("interpreted")


def test_other_arguments_and_other_free_memory_are_interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    module, plans, view = parse(POOL), ProgramPlans(), negation("-1 -2", "-3 -4")
    run_bundle(module, memory(), BASES, lambda _: view, plans=plans)
    monkeypatch.setattr(Interpreter, "call_op", forbidden)
    with pytest.raises(AssertionError, match="interpreted"):
        run_bundle(module, memory(), BASES[::-1], lambda _: view, plans=plans)
    fuller = memory()
    fuller.allocate("more", 128)
    with pytest.raises(AssertionError, match="interpreted"):
        run_bundle(module, fuller, BASES, lambda _: view, plans=plans)


def test_a_run_that_stops_leaves_no_trace() -> None:
    module, plans, view = parse(bundle()), ProgramPlans(), negation("-1 -2", "-3 -4")
    function = find_function(module, "sdsc_bundle")
    empty = ExactMemory()
    for base in BASES:
        empty.add_region(f"at {base}", base, 512)
    with pytest.raises(MachineFault):
        run_bundle(module, empty, BASES, lambda _: view, plans=plans)
    assert plans.trace(function, (*BASES, BASES[1] + 512)) is None
    run_bundle(module, memory(), BASES, lambda _: view, plans=plans)
    trace = plans.trace(function, (*BASES, BASES[1] + 512))
    assert trace is not None
    assert [step.symbols for step in trace if isinstance(step, BoundLaunch)] == [
        {-1: BASES[0], -2: BASES[0] + 256, -3: BASES[1], -4: BASES[1] + 256}
    ]


def test_a_long_trace_is_not_kept() -> None:
    function, plans = find_function(parse(bundle()), "sdsc_bundle"), ProgramPlans()
    assert isinstance(function, FuncOp)
    plans.keep(function, BASES, [PoolAllocation(128)] * (1 << 13))
    assert plans.trace(function, BASES) is not None
    plans.keep(function, BASES[:1], [PoolAllocation(128)] * (1 + (1 << 13)))
    assert plans.trace(function, BASES[:1]) is None


def test_the_latest_few_runs_are_kept() -> None:
    function, plans, card = find_function(parse(bundle()), "sdsc_bundle"), ProgramPlans(), memory()
    runs = [KnownRun(step, (), (), {}, {}, None) for step in range(5)]
    for run in runs:
        plans.keep_run(function, BASES, card, run)
    for step, kept in enumerate([[], *([run] for run in runs[1:])]):
        card.step = step
        assert plans.known_runs(function, BASES, card) == kept
    assert not plans.known_runs(function, BASES[:1], card)
