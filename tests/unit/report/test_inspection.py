"""What is said of a program without running it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import spyre_mlir
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.errors import InputError
from spyre_mlir.pipeline import Lowered
from spyre_mlir.report.inspection import InspectedProgram
from tests.functions import FunctionModel


@pytest.fixture(scope="module")
def program() -> InspectedProgram:
    made = spyre_mlir.compile(FunctionModel(lambda x: torch.exp(x) * x), (torch.zeros(4, 64),))
    assert isinstance(made, CompiledModel)
    return InspectedProgram(made._program, made._lowered, made._options)


def test_texts_of_levels_and_of_ktir(program: InspectedProgram) -> None:
    assert "aten.exp" in program.mlir("aten")
    assert '"aten.exp"' in program.mlir("aten", generic=True)
    assert "ktdp." in program.ktir()
    assert list(program.ktir_modules())
    with pytest.raises(InputError, match="no level is called 'llvm'"):
        program.mlir("llvm")


def test_the_report_has_stages_and_times(program: InspectedProgram, tmp_path: Path) -> None:
    report = program.report(tmp_path / "page.html")
    assert [stage.level for stage in report.stages] == ["aten", "spyre.loop", "spyre.kernel", "superdsc"]
    assert report.timeline is not None and len(report.timeline.kernels) == program.kernels == 3  # x to LX, exp, mul
    assert report.faults is None and program.host_steps == ()
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")


def test_the_rival_is_in_the_report_if_asked_for(program: InspectedProgram) -> None:
    assert program.report().rival is None
    beside = program.report(rival=True).rival
    assert beside is not None and len(beside.planned.kernels) == 3
    assert str(beside) == str(program.beside_rival())


def test_the_trace_is_of_the_timeline(program: InspectedProgram, tmp_path: Path) -> None:
    cycles = tmp_path / "cycles.txt"
    events = json.loads(program.trace(tmp_path / "trace.json", ideal_cycles=cycles).read_text())
    assert events
    assert len(cycles.read_text().splitlines()) == 3 + 2  # a line per kernel, and two around them
    with pytest.raises(InputError, match="profile must be one of"):
        program.timeline("fast")  # type: ignore[arg-type]


def test_a_level_that_was_not_kept_is_named(program: InspectedProgram) -> None:
    bare = InspectedProgram(program._program, Lowered(), program._options)
    with pytest.raises(InputError, match=r"has no level superdsc\n.*levels=True"):
        bare.timeline()
