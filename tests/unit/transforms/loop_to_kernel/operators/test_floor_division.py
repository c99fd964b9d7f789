"""Floor division: the steps that bounds allow, and the numbers of Python's floor division."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import FloatAttr, f64

from spyre_mlir.hw.sticks import UNIT, StickLayout
from spyre_mlir.machine.levels.run import run_function
from spyre_mlir.transforms.loop_to_kernel.buffers import PlannedBuffer
from spyre_mlir.transforms.loop_to_kernel.layout_planner import LayoutPlanner
from spyre_mlir.transforms.loop_to_kernel.operators.floor_division import FloorDivision
from spyre_mlir.transforms.utils.numerics.integer_ranges import IntegerBounds
from tests.unit.transforms.levels import passed
from tests.unit.transforms.loop_to_kernel.planning import functions_of, names, nest, steps


def text(element: str) -> str:
    kind = f"tensor<4x64x{element}>"
    return f"""func.func @main(%x: {kind}, %y: {kind}) -> {kind} {{
      %0 = spyre.loop.nest [m = 4, n = 64] ins(%x[m, n] : {kind}, %y[m, n] : {kind}) -> [m, n] : {kind} {{
      ^bb0(%a: {element}, %b: {element}):
        %q = arith.floordivsi %a, %b : {element}
        spyre.loop.yield %q : {element}
      }}
      func.return %0 : {kind}
    }}"""


def quotient(dividend: IntegerBounds, divisor: IntegerBounds, lane: str | None = "n") -> LayoutPlanner:
    p, op = LayoutPlanner(), nest(text("i32"))
    whole = FloorDivision(p, op, lane)
    assert whole.stick == (UNIT if lane is None else 1)
    a, b = (PlannedBuffer((4, 64), "IEEE_FP32", StickLayout.published((4, 64), 1, 64)) for _ in "ab")
    made, index = whole.of((a, op.output_map.data), (b, op.output_map.data), [dividend, divisor])
    assert steps(p)[-1].output == (made, index) and index == op.output_map.data
    assert made.layout.stick == whole.stick and made.format == "IEEE_FP32" and made.shape == (4, 64)
    return p


FLOOR = ["realdiv", "floor"]
REST = [*FLOOR, "mul", "sub", "realdiv", "floor", "add"]
EXACT = 2**24
LONG = [*FLOOR, "mul", "sub", "greaterthan", "sub", "add", "mul", "sub", "lesserequal", "add"]
SIGNED = [*FLOOR, "mul", "sub", "realdiv", "greaterthan", "sub", "add", "mul", "sub", "realdiv", "lesserequal", "add"]


@pytest.mark.parametrize(
    ("dividend", "divisor", "wanted"),
    [
        ((-EXACT, EXACT), (4, 4), FLOOR),
        ((-EXACT, EXACT), (-8, -8), FLOOR),
        ((-EXACT, EXACT), (1, 1), FLOOR),
        ((-100, 100), (3, 3), REST),
        ((-100, 100), (4, 8), REST),
        ((0, EXACT), (1, EXACT), REST),  # neither is below 0
        ((0, EXACT), (0, 9), REST),
        ((0, EXACT), (3, 3), REST),
        ((-EXACT, 0), (-EXACT, -1), REST),  # neither is above 0, as in quotients that are truncated
        ((-EXACT, 0), (-9, 0), REST),
        ((-EXACT, 1), (-9, -1), SIGNED),
        ((-EXACT + 9, EXACT - 9), (-9, 8), REST),  # products stay within 2^24
        ((-EXACT + 9, EXACT - 8), (-9, 8), SIGNED),
        ((-EXACT + 8, EXACT - 9), (-9, 8), SIGNED),
        ((-EXACT, EXACT), (1, 9), LONG),
        ((0, EXACT), (-1, 9), SIGNED),
    ],
)
def test_steps_by_bounds(dividend: IntegerBounds, divisor: IntegerBounds, wanted: list[str]) -> None:
    p = quotient(dividend, divisor)
    assert names(p) == wanted


@pytest.mark.parametrize(
    ("divisor", "watched"), [((-1, 1), True), ((0, 5), True), ((-5, 0), True), ((1, 5), False), ((-5, -1), False)]
)
def test_a_division_by_zero_is_watched(divisor: IntegerBounds, watched: bool) -> None:
    found = [step.integers for step in steps(quotient((-9, 9), divisor))]
    assert found == [False, watched, *[False] * (len(found) - 2)]


def test_numbers_of_the_longest_way() -> None:
    """What is too large is more than 0, the next quotient is one more, and what fits it leaves no more than 0."""
    found = [b.constant for step in steps(quotient((-EXACT, EXACT), (1, 9))) for b, _ in step.inputs if b.constant]
    assert found == [FloatAttr(n, f64) for n in (0.0, 1.0, 0.0)]


def test_sparse_results() -> None:
    assert names(quotient((-9, 9), (3, 3), lane=None)) == REST


@pytest.mark.parametrize(("element", "most", "wanted"), [("i8", 127, REST), ("i32", EXACT - 1, SIGNED)])
def test_numbers_are_those_of_python(element: str, most: int, wanted: list[str]) -> None:
    rng = np.random.default_rng(1)
    a, b = rng.integers(-most, most, (4, 64)), rng.integers(1, 40, (4, 64)) * rng.choice([-1, 1], (4, 64))
    a[0, :40] = (np.arange(40) % 7 - 3) * b[0, :40]  # exact quotients
    module = passed(text(element), "convert-spyre-loop-to-spyre-kernel")
    assert functions_of(module)[: len(wanted)] == wanted
    (found,) = run_function(module, [a, b])
    info = np.iinfo(np.int8 if element == "i8" else np.int32)
    assert np.array_equal(found, (np.floor_divide(a, b) - info.min) % 2**info.bits + info.min)
