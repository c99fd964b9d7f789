"""Activations of one hardware function, against their definitions, and the forms that replace two of them."""

from __future__ import annotations

from collections.abc import Callable
from math import erf, pi, sqrt

import numpy as np
import pytest

from spyre_mlir.errors import ConstraintError
from spyre_mlir.ops.hardware_functions import FUNCTIONS
from spyre_mlir.ops.native import activations
from tests.unit.ops.evaluation import (
    NAN,
    budgets,
    check_samples,
    defaults,
    entries_in,
    entry_of,
    made,
    result,
    results,
    run,
    same,
    taking_apart,
)

X = np.array([[-3.0, -0.5, 0.0], [0.25, 1.0, 4.0]])


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


DEFINITIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "relu": lambda x: np.where(x > 0, x, 0.0),
    "sigmoid": sigmoid,
    "silu": lambda x: x * sigmoid(x),
    "gelu": lambda x: x / 2 * (1 + np.vectorize(erf)(x / sqrt(2))),
    "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
    "softplus": lambda x: np.log1p(np.exp(x)),
}


@pytest.mark.parametrize("overload", DEFINITIONS)
def test_definitions(overload: str) -> None:
    same(result(overload, X), DEFINITIONS[overload](X))


@pytest.mark.parametrize("name", ["sigmoid", "silu", "mish", "softplus"])
def test_large_numbers_do_not_overflow(name: str) -> None:
    with np.errstate(over="raise"):
        got = entry_of(name).meaning(np.array([-1000.0, 1000.0]))
    same(got, [0.0, 1.0 if name == "sigmoid" else 1000.0])


def gelu_by_tanh(x: np.ndarray) -> np.ndarray:
    return x / 2 * (1 + np.tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))


def test_gelu_by_a_hyperbolic_tangent() -> None:
    same(result("gelu", X, approximate="tanh"), gelu_by_tanh(X))
    same(run(taking_apart("gelu", approximate="tanh"), X)[0], gelu_by_tanh(X))
    assert run(taking_apart("gelu", approximate="none"), X) == []


def test_far_below_zero_gelu_keeps_its_digits() -> None:
    """x times sigmoid(2u), which is e^(2u) there; the hyperbolic tangent plus 1 would be 0."""
    x = np.array([-6.0])
    twice = 2 * sqrt(2 / pi) * (x + 0.044715 * x**3)
    same(run(taking_apart("gelu", approximate="tanh"), x)[0], x * np.exp(twice), rtol=1e-10, atol=0.0)


def test_another_approximation_is_refused() -> None:
    with pytest.raises(ConstraintError, match='C1: approximate is "x", expected "none" or "tanh"'):
        results("gelu", X, approximate="x")


FACTORS = [(2.0, 1.0), (0.5, 1.0), (-1.0, 20.0), (0.3, 20.0), (0.3, 0.5), (1.0, 0.3), (1.0, 20.01)]


def softplus(x: np.ndarray, beta: float, threshold: float) -> np.ndarray:
    return np.where(x * beta > threshold, x, np.log1p(np.exp(x * beta)) / beta)


@pytest.mark.parametrize(("beta", "threshold"), FACTORS)
def test_softplus(beta: float, threshold: float) -> None:
    x = np.append(X, [2.0, 0.3, NAN])  # on a threshold too
    given = {"beta": beta, "threshold": threshold}
    same(result("softplus", x, **given), softplus(x, beta, threshold))
    parts = run(taking_apart("softplus", **given), x)
    if (beta, threshold) in FACTORS[:3]:  # DL16 has both numbers
        assert parts == []
    else:
        same(parts[0], softplus(x, beta, threshold))


@pytest.mark.parametrize(("threshold", "chooses"), [(17.5, True), (18.0, False), (20.0, False)])
def test_a_high_threshold_needs_no_choice(threshold: float, chooses: bool) -> None:
    """Above 18, log(1 + e^x) is x to the last bit of a float32: e^-18 is below 2^-25."""
    ops = made(taking_apart("softplus", beta=0.3, threshold=threshold), X)
    assert ("gt.Scalar" in ops) == chooses


FUNCTION_NAMES = {
    "relu": "relufwd",
    "sigmoid": "sigmoid",
    "silu": "silu",
    "gelu": "gelufwd",
    "mish": "mish",
    "softplus": "softplus",
}


def test_declarations() -> None:
    check_samples(activations.__name__)
    entries = entries_in(activations.__name__)
    assert {e.name: e.opfunc for e in entries} == FUNCTION_NAMES
    for entry in entries:
        function = FUNCTIONS[FUNCTION_NAMES[entry.name]]
        assert entry.fp32 == ("FP32" in function.formats), entry.name
        assert tuple(entry.op_info.values()) == function.constants
        assert set(entry.op_info) <= {p.name for p in entry.params}
    wanted = dict.fromkeys(FUNCTION_NAMES, (4, True)) | {"relu": (1, True)}
    assert budgets(activations.__name__) == wanted
    assert defaults(activations.__name__) == {("approximate", "none"), ("beta", 1), ("threshold", 20)}
