"""Meanings of hardware functions, against closed values."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.machine import hardware_functions
from spyre_mlir.machine.hardware_functions import (
    Contraction,
    Movement,
    Pointwise,
    Reduction,
    known_op_funcs,
    meaning_of,
)
from spyre_mlir.ops import ATEN

X = [-2.0, -0.5, 0.0, 0.5, 3.0]
Y = [1.0, -0.5, 2.0, 0.25, 3.0]

UNARY = {
    "abs": abs,
    "neg": lambda x: -x,
    "relufwd": lambda x: max(x, 0.0),
    "exp": math.exp,
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "silu": lambda x: x / (1 + math.exp(-x)),
    "tanh": math.tanh,
    "gelufwd": lambda x: 0.5 * x * (1 + math.erf(x / math.sqrt(2))),
    "floor": math.floor,
}
POSITIVE = {
    "sqrt": math.sqrt,
    "rsqrt": lambda x: 1 / math.sqrt(x),
    "log": math.log,
    "reciprocal": lambda x: 1 / x,
}
BINARY = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "realdiv": lambda a, b: a / b,
    "maximum": max,
    "minimum": min,
    "equal": lambda a, b: float(a == b),
    "notequal": lambda a, b: float(a != b),
    "greaterequal": lambda a, b: float(a >= b),
    "lesserequal": lambda a, b: float(a <= b),
    "greaterthan": lambda a, b: float(a > b),
    "lesserthan": lambda a, b: float(a < b),
}


def apply(name: str, *args: list[float], **constants: float) -> list[float]:
    """Run an element-wise function on plain lists."""
    meaning = meaning_of(name)
    assert isinstance(meaning, Pointwise)
    return meaning.apply([np.asarray(a) for a in args], constants).tolist()


@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str) -> None:
    assert apply(name, X) == pytest.approx([UNARY[name](x) for x in X], rel=1e-14)


@pytest.mark.parametrize("name", POSITIVE)
def test_positive(name: str) -> None:
    assert apply(name, [0.25, 3.0]) == pytest.approx([POSITIVE[name](x) for x in (0.25, 3.0)], rel=1e-14)


@pytest.mark.parametrize("name", BINARY)
def test_binary(name: str) -> None:
    assert apply(name, X, Y) == pytest.approx([BINARY[name](a, b) for a, b in zip(X, Y, strict=True)], rel=1e-14)


def test_functions_with_constants() -> None:
    assert apply("clip", X, clipMin=-0.5, clipMax=2.0) == [-0.5, -0.5, 0.0, 0.5, 2.0]
    soft = [math.log1p(math.exp(2 * x)) / 2 if 2 * x <= 1 else x for x in X]
    assert apply("softplus", X, softplusBeta=2.0, softplusThresh=1.0) == pytest.approx(soft)
    assert apply("where3", [1.0, 0.0, 2.0], [1.0, 2.0, 3.0], [4.0, 5.0, 6.0]) == [1.0, 5.0, 3.0]


@pytest.mark.parametrize("suffix", ["", "nonstick"])
@pytest.mark.parametrize(
    ("name", "fold"),
    [("sum", np.add), ("mean", np.add), ("max", np.maximum), ("min", np.minimum), ("prod", np.multiply)],
)
def test_reductions(name: str, fold: np.ufunc, suffix: str) -> None:
    meaning = meaning_of(name + suffix)
    assert isinstance(meaning, Reduction)
    assert meaning.fold is fold
    assert meaning.factor == ("scaling_factor" if name == "mean" else None)


def test_the_others() -> None:
    assert isinstance(meaning_of("batchmatmul"), Contraction)
    assert all(isinstance(meaning_of(n), Movement) for n in ("identity", "ReStickifyOpHBM", "ReStickifyOpLx"))
    assert {*UNARY, *POSITIVE, *BINARY, "clip", "where3", "sum", "batchmatmul"} <= set(known_op_funcs())
    with pytest.raises(UnsupportedError, match="conv2d"):
        meaning_of("conv2d")


@pytest.mark.parametrize(
    ("overload", "meaning"),
    [
        ("mm", Contraction()),
        ("clone", Movement()),
        ("sum.dim_IntList", Reduction(np.add)),
        ("amax", Reduction(np.maximum)),
    ],
)
def test_a_function_that_only_an_op_declares_means_what_its_family_says(
    overload: str, meaning: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    declared = {"mine": ATEN.find(overload), "other": ATEN.find("view")}
    monkeypatch.setattr(hardware_functions, "ATEN", SimpleNamespace(by_opfunc=declared.get))
    assert meaning_of("mine") == meaning
    with pytest.raises(UnsupportedError, match="the machine has no rule for OpFunc 'other'"):
        meaning_of("other")
