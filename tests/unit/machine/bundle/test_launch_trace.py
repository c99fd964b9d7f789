"""Traces of bundle functions: the second run needs no interpreter, and does the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from xdsl.dialects.func import FuncOp
from xdsl.interpreter import Interpreter

from spyre_mlir.errors import FaultKind, MachineFault
from spyre_mlir.machine.bundle.host_program import run_program
from spyre_mlir.machine.bundle.launch_trace import BoundLaunch, PoolAllocation, ProgramPlans
from spyre_mlir.machine.bundle.run import run_bundle
from spyre_mlir.machine.bundle.transfers import ResidentTensors
from spyre_mlir.machine.levels.run import find_function
from spyre_mlir.machine.memory.exact import ExactMemory, Memory
from tests.unit.machine.bundle.host_programs import DL16, bundle, negation, numbers, program
from tests.unit.machine.modules import parse

BASES = (1 << 20, 2 << 20)
# The result goes to the pool and is lost, and from there to the argument.
POOL = """func.func @sdsc_bundle(%p0: !sdscbundle.input_arg<index>, %p1: !sdscbundle.input_arg<index>) {
  %step = arith.constant 256 : index
  %pool = sdscbundle.device_mem_allocate 512 bytes : index
  %pool1 = arith.addi %pool, %step : index
  %a = sdscbundle.input_arg_extract value from %p0 : !sdscbundle.input_arg<index> -> index
  %a1 = arith.addi %a, %step : index
  %b = sdscbundle.input_arg_extract value from %p1 : !sdscbundle.input_arg<index> -> index
  %b1 = arith.addi %b, %step : index
  sdscbundle.sdsc_execute (%a, %a1, %pool, %pool1) {sdsc_filename="sdsc_0.json", symbol_ids=[-1, -2, -3, -4]}
  sdscbundle.sdsc_execute (%pool, %pool1, %b, %b1) {sdsc_filename="sdsc_0.json", symbol_ids=[-1, -2, -3, -4]}
  func.return
}"""


def memory() -> Memory:
    made = ExactMemory()
    for base in BASES:
        made.add_region(f"at {base}", base, 512)
    made.store(BASES[0] + 2 * np.arange(256), numbers().reshape(-1), DL16)
    return made


def forbidden(*_: object) -> None:
    raise AssertionError("interpreted")


def test_the_second_run_is_a_replay_with_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    module, plans, view = parse(POOL), ProgramPlans(), negation("-1 -2", "-3 -4")
    results: list[list[float]] = []
    seen: list[int] = []
    for again in (False, True):
        if again:
            monkeypatch.setattr(Interpreter, "call_op", forbidden)
        one = memory()
        run_bundle(module, one, BASES, lambda _: view, lambda *launch: seen.append(launch[3][-1]), plans=plans)
        results.append(one.load(BASES[1] + 2 * np.arange(256), DL16)[0].tolist())
        # The pool stands behind the arguments, and is gone.
        assert [region.name for region in one.regions] == [f"at {base}" for base in BASES]
    assert seen == [BASES[0], BASES[1] + 512] * 2
    assert results == [numbers().reshape(-1).tolist()] * 2


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


def test_a_trace_has_the_files_of_its_run_and_new_plans_read_them_again() -> None:
    of, resident = program(), ResidentTensors()
    run_program(of, [numbers()], resident=resident)
    wrong = replace(of, load=lambda _: negation("-1 -2", "-9 -4"))
    run_program(wrong, [numbers()], resident=resident)  # a replay, with the file that the first run read
    with pytest.raises(MachineFault) as caught:
        run_program(wrong, [numbers()], resident=ResidentTensors())
    assert caught.value.kind == FaultKind.UNBOUND_SYMBOL
    assert (caught.value.where or "").startswith("sdsc_0.json")
