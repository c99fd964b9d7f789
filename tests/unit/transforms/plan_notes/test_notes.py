"""Notes of loops as attributes: written, read again, and refused."""

from __future__ import annotations

import pytest
from xdsl.dialects.func import FuncOp

from spyre_mlir.dialects.spyre.kernel import KernelOp
from spyre_mlir.planning.trips import TripSpan
from spyre_mlir.text.render import module_text, parse_module
from spyre_mlir.transforms.plan_notes.notes import (
    KernelNote,
    LoopNote,
    PlanError,
    RunNote,
    has_notes,
    kernel_note,
    loop_notes,
    put_loop_notes,
    refuse_notes,
)
from spyre_mlir.universe import make_context
from tests.unit.transforms.levels import ops, passed
from tests.unit.transforms.plan_notes.texts import noted
from tests.unit.transforms.test_place_lx import softmax

RUN = "{division = #spyre.division<m over 8, n>}"


def test_notes_are_read_as_they_were_written() -> None:
    """Times are for readers of the text, and nothing follows from them."""
    module = passed(softmax(64, 128))
    (function,), kernel = ops(module, FuncOp), ops(module, KernelOp)[2]
    assert not has_notes(function)
    uneven = TripSpan(4, 8, 35), TripSpan(1, 3, 35, 32, copies=10)
    put_loop_notes(function, [LoopNote((TripSpan.of_all(4),), 2, 1.23446, 5.0, "it is short"), LoopNote(uneven)])
    KernelNote(1, ("m", "n"), (RunNote({"n": 1, "m": 8}, "lx", 2.3458), RunNote({"m": 2, "n": 4}))).put(kernel)
    text = module_text(module)
    said = '{trips = [4 : i64, 2 : i64], us = 1.234000e+00 : f64, alone_us = 5.000000e+00 : f64, why = "it is short"}'
    assert f"spyre.loops = [{said}, {{blocks = [[4 : i64, 8 : i64], [1 : i64, 3 : i64, 10 : i64]]}}]" in text
    run = '{division = #spyre.division<n, m over 8>, place = "lx", us = 2.346000e+00 : f64}'
    assert f'over = ["m", "n"], runs = [{run}, {{division = #spyre.division<m over 2, n over 4>}}]' in text
    again = parse_module(text, make_context())
    (function,), kernel = ops(again, FuncOp), ops(again, KernelOp)[2]
    assert has_notes(function)
    assert loop_notes(function) == [LoopNote((TripSpan.of_all(4),), 2), LoopNote(uneven)]
    note = kernel_note(kernel)
    assert note == KernelNote(1, ("m", "n"), (RunNote({"n": 1, "m": 8}, "lx"), RunNote({"m": 2, "n": 4})))
    assert note is not None and note.runs is not None
    assert list(note.runs[0].splits) == ["n", "m"]  # cores are numbered in this order
    assert kernel_note(ops(again, KernelOp)[0]) is None


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("4", "the note of a loop is a dictionary, got 4"),
        ("{trip = [4]}", "a loop has no part trip"),
        ("{}", "a loop has one or two numbers of trips"),
        ("{trips = [1]}", "a loop has one or two numbers of trips"),
        ("{trips = [4, 0]}", "a loop has one or two numbers of trips"),
        ("{trips = [4, 2, 2]}", "a loop has one or two numbers of trips"),
        ("{trips = [4], blocks = [[4, 8]]}", "a loop has one or two numbers of trips"),
        ("{blocks = [[4, 8], [1]]}", "a loop has one or two numbers of trips"),
        ("{blocks = 4}", "a loop has one or two numbers of trips"),
    ],
)
def test_a_loop_that_is_none_is_refused(said: str, why: str) -> None:
    (function,) = ops(passed(noted(softmax(64, 128), said)), FuncOp)
    with pytest.raises(PlanError, match=why):
        loop_notes(function)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ('over = ["m"]', "a plan names a loop by its number, got None"),
        ('loop = -1, over = ["m"]', "a plan names a loop by its number, got -1"),
        ("loop = 0", "a plan lists the loops of the kernel that its loop goes over, got None"),
        ("loop = 0, over = [1]", "a plan lists the loops of the kernel that its loop goes over"),
        ('loop = 0, over = ["m"], trips = 4', "a plan has no part trips"),
        ('loop = 0, over = ["m"], runs = 4', "the runs of a plan are a list, got 4"),
        ('loop = 0, over = ["m"], runs = [{place = "lx"}]', "the division of a run names each loop once, got None"),
        ('loop = 0, over = ["m"], runs = [{division = #spyre.division<m, m>}]', "names each loop once, got"),
        (f'loop = 0, over = ["m"], runs = [{RUN[:-1]}, place = "l1"}}]', "the place of a run is lx or hbm, got 'l1'"),
    ],
)
def test_a_plan_that_is_none_is_refused(said: str, why: str) -> None:
    module = passed(noted(softmax(64, 128), "{trips = [4]}", ("exp", said)))
    with pytest.raises(PlanError, match=why):
        kernel_note(ops(module, KernelOp)[2])


def test_notes_that_no_loops_were_made_of_are_refused() -> None:
    refuse_notes(passed(softmax(64, 128)))
    with pytest.raises(PlanError, match="notes loops, and nothing has put them"):
        passed(noted(softmax(64, 128), "{trips = [4]}", ("exp", 'loop = 0, over = ["m"]')), "divide-work")
