"""Functions of single elements, against numpy, and what stands for them where they have no function of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from spyre_mlir.ops.hardware_functions import FUNCTIONS
from spyre_mlir.ops.native import pointwise
from tests.unit.ops.evaluation import (
    INF,
    NAN,
    calling,
    check_samples,
    defaults,
    entries_in,
    made,
    result,
    run,
    same,
    taking_apart,
    types,
)

X = np.array([[1.5, -2.0, 0.0], [NAN, 4.0, -0.25]])
Y = np.array([2.0, -2.0, 0.5])
POSITIVE = np.array([[0.25, 1.0], [3.0, 100.0]])
PAIRS: dict[str, Any] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "eq": np.equal,
    "ne": np.not_equal,
    "ge": np.greater_equal,
    "le": np.less_equal,
    "gt": np.greater,
    "lt": np.less,
}
SINGLE: dict[str, Any] = {
    "neg": np.negative,
    "abs": np.abs,
    "exp": np.exp,
    "tanh": np.tanh,
    "floor": np.floor,
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: x**-0.5,
    "reciprocal": lambda x: x**-1.0,
}


@pytest.mark.parametrize("name", PAIRS)
def test_functions_of_two(name: str) -> None:
    same(result(f"{name}.Tensor", X, Y), PAIRS[name](X, Y))
    with np.errstate(divide="ignore"):
        same(result(f"{name}.Tensor", Y, X), PAIRS[name](Y, X))
    same(result(f"{name}.Scalar", X, -2.0), PAIRS[name](X, -2.0))


@pytest.mark.parametrize(("name", "wanted"), [("maximum", np.maximum), ("minimum", np.minimum)])
def test_the_larger_and_the_smaller(name: str, wanted: Any) -> None:
    same(result(name, X, Y), wanted(X, Y))
    same(result(name, Y, X), wanted(Y, X))


@pytest.mark.parametrize("name", SINGLE)
def test_functions_of_one(name: str) -> None:
    x = POSITIVE if name in ("log", "sqrt", "rsqrt", "reciprocal") else X
    same(result(name, x), SINGLE[name](x))


@pytest.mark.parametrize("overload", ["where.self", "where.ScalarOther", "where.ScalarSelf", "where.Scalar"])
def test_choices(overload: str) -> None:
    same(result(overload, np.array([True, False, True]), X, Y), np.where([True, False, True], X, Y))
    same(result(overload, np.array([[0.0], [-0.5]]), 1.0, Y), [Y, [1.0, 1.0, 1.0]])


def test_a_factor_of_the_second_operand() -> None:
    for name, wanted in (("add", X - 3.0 * Y), ("sub", X + 3.0 * Y)):
        same(result(f"{name}.Tensor", X, Y, alpha=-3.0), wanted)
        same(run(taking_apart(f"{name}.Tensor", alpha=-3.0), X, Y)[0], wanted)
        assert run(taking_apart(f"{name}.Tensor"), X, Y) == []
    same(run(taking_apart("add.Scalar", alpha=2), X, 0.5)[0], X + 1.0)
    assert made(taking_apart("sub.Scalar", alpha=2), X, 0.5) == ["sub.Tensor"]


LEFT, RIGHT = np.array([False, False, True, True]), np.array([False, True, False, True])
ON_TRUTH: dict[str, Any] = {name: PAIRS[name] for name in ("eq", "ne", "ge", "le", "gt", "lt")} | {
    "mul": np.logical_and
}


@pytest.mark.parametrize("name", ON_TRUTH)
def test_truth_values(name: str) -> None:
    same(run(taking_apart(f"{name}.Tensor"), LEFT, RIGHT)[0], ON_TRUTH[name](LEFT, RIGHT))
    assert run(taking_apart(f"{name}.Tensor"), X, Y) == []


def test_truth_values_of_other_functions() -> None:
    same(run(taking_apart("maximum"), LEFT, RIGHT)[0], LEFT | RIGHT)
    same(run(taking_apart("minimum"), LEFT, RIGHT)[0], LEFT & RIGHT)
    same(run(taking_apart("add.Tensor"), LEFT, RIGHT)[0], LEFT | RIGHT)
    same(run(taking_apart("add.Tensor", alpha=0), LEFT, RIGHT)[0], LEFT)
    same(run(taking_apart("add.Tensor", alpha=2), LEFT, RIGHT)[0], LEFT | RIGHT)
    assert run(taking_apart("add.Tensor"), LEFT, Y[:1]) == []
    assert run(taking_apart("add.Tensor"), Y[:1], LEFT) == []


BOUNDS: list[tuple[dict[str, Any], float, float]] = [
    ({"min": -0.5, "max": 1.0}, -0.5, 1.0),
    ({"min": 0.0}, 0.0, INF),
    ({"max": 0.0}, -INF, 0.0),
    ({"min": 3, "max": 1}, 3, 1),
    ({}, -INF, INF),
]


@pytest.mark.parametrize(("given", "low", "high"), BOUNDS)
def test_bounds(given: dict[str, Any], low: float, high: float) -> None:
    wanted = np.clip(X, low, high)
    same(result("clamp", X, **given), wanted)
    same(run(taking_apart("clamp", **given), X)[0], wanted)
    ops = ["maximum"] * ("min" in given) + ["minimum"] * ("max" in given)
    assert made(taking_apart("clamp", **given), X) == ops


# The hardware function of each, the operation of MLIR, and the ulps a result may be off by.
FACTS: dict[str, tuple[str, str | None, float]] = {
    "add": ("add", "arith.addf", 1),
    "sub": ("sub", "arith.subf", 1),
    "mul": ("mul", "arith.mulf", 1),
    "div": ("realdiv", "arith.divf", 2),
    "maximum": ("maximum", "arith.maximumf", 1),
    "minimum": ("minimum", "arith.minimumf", 1),
    "eq": ("equal", "arith.cmpf oeq", 1),
    "ne": ("notequal", "arith.cmpf une", 1),
    "ge": ("greaterequal", "arith.cmpf oge", 1),
    "le": ("lesserequal", "arith.cmpf ole", 1),
    "gt": ("greaterthan", "arith.cmpf ogt", 1),
    "lt": ("lesserthan", "arith.cmpf olt", 1),
    "where": ("where3", None, 1),
    "neg": ("neg", "arith.negf", 1),
    "abs": ("abs", "math.absf", 1),
    "exp": ("exp", "math.exp", 4),
    "log": ("log", "math.log", 4),
    "sqrt": ("sqrt", "math.sqrt", 2),
    "rsqrt": ("rsqrt", "math.rsqrt", 2),
    "reciprocal": ("reciprocal", None, 2),
    "tanh": ("tanh", "math.tanh", 4),
    "floor": ("floor", "math.floor", 1),
    "clamp": ("clip", None, 1),
}


def test_declarations() -> None:
    check_samples(pointwise.__name__)
    entries = entries_in(pointwise.__name__)
    assert {e.name: (e.opfunc, e.scalar, e.ulps) for e in entries} == FACTS
    for entry in entries:
        function = FUNCTIONS[FACTS[entry.name][0]]
        assert entry.fp32 == ("FP32" in function.formats), entry.name
        assert tuple(entry.op_info.values()) == function.constants
    assert {e.name: dict(e.op_info) for e in entries if e.op_info} == {"clamp": {"min": "clipMin", "max": "clipMax"}}
    assert defaults(pointwise.__name__) == {("alpha", 1), ("min", None), ("max", None)}


@pytest.mark.parametrize("name", FACTS)
def test_comparisons_give_truth_values(name: str) -> None:
    entry = next(e for e in entries_in(pointwise.__name__) if e.name == name)
    given = [LEFT, Y[:1], Y[:1]] if name == "where" else [Y] * sum(p.is_tensor for p in entry.params)
    element = "i1" if len(name) == 2 else "f32"
    assert types(calling(entry.overloads[0]), *given)[0][1] == element
