"""Traces of bundle functions: the second run needs no interpreter, and does the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from xdsl.interpreter import Interpreter

from spyre_mlir.errors import FaultKind, MachineFault
from spyre_mlir.machine.bundle.host_program import run_program
from spyre_mlir.machine.bundle.program_plans import ProgramPlans
from spyre_mlir.machine.bundle.run import run_bundle
from spyre_mlir.machine.bundle.transfers import ResidentTensors
from tests.unit.machine.bundle.host_programs import BASES, DL16, POOL, memory, negation, numbers, program
from tests.unit.machine.modules import parse


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


def test_a_trace_has_the_files_of_its_run_and_new_plans_read_them_again() -> None:
    of, resident = program(), ResidentTensors()
    run_program(of, [numbers()], resident=resident)
    wrong = replace(of, load=lambda _: negation("-1 -2", "-9 -4"))
    run_program(wrong, [numbers()], resident=resident)  # a replay, with the file that the first run read
    with pytest.raises(MachineFault) as caught:
        run_program(wrong, [numbers()], resident=ResidentTensors())
    assert caught.value.kind == FaultKind.UNBOUND_SYMBOL
    assert (caught.value.where or "").startswith("sdsc_0.json")
