"""Accuracy as it is shown: the worst launches first, modules folded, and a sentence about the cause."""

from __future__ import annotations

import pytest

from spyre_mlir.debug.error_walk import KernelError
from spyre_mlir.report.accuracy import Accuracy, placed


def launch(number: int, before: float, error: float, module: str = "", **counts: int) -> KernelError:
    return KernelError(
        f"sdsc_{number}.json", "mul" if number else "add", module, f"m.py:{number}", error, before, **counts
    )


def of(*launches: KernelError, curable: bool = False) -> Accuracy:
    return Accuracy((0.25,), walk=lambda: launches, curable=lambda _: curable)


ROUNDED = (launch(0, 1e-4, 2e-4, "layers.0.a"), launch(1, 2e-4, 9e-4, "layers.1.a"), launch(2, 9e-4, 9e-4, "head"))


def test_launches_are_run_once_and_only_when_asked_for() -> None:
    runs: list[int] = []
    found = Accuracy((0.5,), walk=lambda: runs.append(1) or ROUNDED)
    assert (found.worst, runs) == (0.5, [])
    assert found.launches == found.launches == ROUNDED
    assert runs == [1]
    assert str(Accuracy((0.5, 0.125))) == "RMS error against double precision: 5.00e-01, 1.25e-01"


def test_the_launch_that_adds_most_is_first_and_spoilt_ones_before_it() -> None:
    assert [one.line for one in of(*ROUNDED).worst_first] == ["m.py:1", "m.py:0", "m.py:2"]
    late, lost = launch(3, 0.1, 0.2, overflows=3), launch(4, 0.1, 0.1, lost=1)
    assert of(*ROUNDED, late, lost).worst_first[:3] == [late, lost, ROUNDED[1]]


def test_modules_of_equal_layers_are_one_group() -> None:
    found = of(*ROUNDED, launch(3, 0.0, 0.0, overflows=2, underflows=5), launch(4, 0.0, 0.0, overflows=1))
    groups = {g.name: (g.launches, g.worst.line, g.overflows, g.underflows) for g in found.by_module()}
    assert groups == {
        "the model itself": (2, "m.py:3", 3, 5),
        "layers.*.a": (2, "m.py:1", 0, 0),
        "head": (1, "m.py:2", 0, 0),
    }
    steps = of(launch(0, 0.0, 1e-4, "net.0"), launch(1, 1e-4, 9e-4, "net.1"), launch(2, 9e-4, 9e-4))
    assert [g.name for g in steps.by_module()] == ["net.1", "net.0", "the model itself"]
    assert [g.name for g in found.by_function()] == ["mul", "add"]
    assert [g.name for g in found.by_line()][:2] == ["m.py:3", "m.py:4"]


@pytest.mark.parametrize(
    ("curable", "cure"), [(True, "compile with keep_float32=True"), (False, "scale down what grows before it")]
)
def test_an_overflow_is_named_with_its_place_and_its_cure(curable: bool, cure: str) -> None:
    spoilt = (launch(3, 0.001, 0.4, "layers.1.mlp", overflows=1224), launch(4, 0.4, 2.0, overflows=6))
    (sentence,) = of(*ROUNDED, *spoilt, curable=curable).advice()
    said, _, hint = sentence.partition("\n  try: ")
    assert said == (
        "1,230 results are beyond 8,573,157,376, the largest DLFloat16, first in mul at m.py:3 (layers.1.mlp); "
        "what depends on them is wrong"
    )
    assert hint.startswith(cure)


def test_errors_of_rounding_alone_are_said_to_be_that() -> None:
    (sentence,) = of(*ROUNDED).advice()
    assert sentence == "no launch is off by more than 1%: rounding to DLFloat16 explains the difference"


def test_the_launch_that_loses_digits_is_named() -> None:
    (sentence,) = of(*ROUNDED, launch(3, 1e-3, 0.3, "norm"), curable=True).advice()
    assert sentence == (
        "mul at m.py:3 (norm) adds most to the error: 1.0e-03 before it, 3.0e-01 behind it\n"
        "  try: compile with keep_float32=True"
    )


def test_numbers_that_vanish_are_said_where_they_matter() -> None:
    vanished, rounded = of(*ROUNDED, launch(3, 1e-3, 1.0, underflows=64)).advice()
    assert vanished.startswith("64 results are below the smallest DLFloat16 and became 0, most in mul at m.py:3")
    assert rounded.startswith("mul at m.py:3 adds most to the error")
    assert len(of(*ROUNDED, launch(3, 1e-3, 1e-3, underflows=64)).advice()) == 1


def test_the_table_has_the_worst_and_says_how_many_more_there_are() -> None:
    text = str(of(*ROUNDED, *(launch(n, 0.0, 1e-6) for n in range(5, 18)), launch(18, 0.1, 0.1, lost=2)))
    lines = text.splitlines()
    assert lines[0] == "RMS error against double precision: 2.50e-01"
    rows = [line.split() for line in lines if line.startswith("  sdsc_")]
    assert rows[0] == ["sdsc_18", "mul", "1.0e-01", "no", "number", "m.py:18"]
    assert rows[1] == ["sdsc_1", "mul", "2.0e-04", "9.0e-04", "layers.1.a", "m.py:1"]
    assert len(rows) == 12
    assert "and 5 launches that add less" in lines


def test_a_launch_without_a_line_is_placed_by_its_file() -> None:
    assert placed(KernelError("sdsc_4.json", "exp", "", "", 0.0, 0.0)) == "exp of sdsc_4.json"
