"""Expressions of hardware functions on numbers, against Python's mathematics."""

from __future__ import annotations

import math

import numpy as np
import pytest

from spyre_mlir.machine.numpy_arithmetic import NumpyArithmetic
from spyre_mlir.ops import function_forms as forms
from spyre_mlir.ops.function_forms import Form

X = (-2.5, -0.5, 0.0, 0.75, 7.0)


def values(form: Form, *args: float, **constants: float) -> float:
    return float(form(NumpyArithmetic(), *(np.asarray(a, np.float64) for a in args), **constants))


@pytest.mark.parametrize("x", X)
@pytest.mark.parametrize(
    ("form", "expected"),
    [
        (forms.same, lambda x: x),
        (forms.relu, lambda x: max(x, 0.0)),
        (forms.relu6, lambda x: min(max(x, 0.0), 6.0)),
        (forms.sigmoid, lambda x: 1 / (1 + math.exp(-x))),
        (forms.silu, lambda x: x / (1 + math.exp(-x))),
        (forms.mish, lambda x: x * math.tanh(math.log1p(math.exp(x)))),
        (forms.unary("math.exp"), math.exp),
        (forms.unary("arith.negf"), lambda x: -x),
        (forms.unary("math.trunc"), math.trunc),
        (forms.unary("math.floor"), math.floor),
        (forms.unary("math.absf"), abs),
        (forms.unary("math.tanh"), math.tanh),
    ],
)
def test_one_operand(form: Form, expected: Form, x: float) -> None:
    assert values(form, x) == pytest.approx(expected(x), rel=1e-14, abs=1e-300)


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        (forms.add, 5.0),
        (forms.sub, 1.0),
        (forms.reversed_sub, -1.0),
        (forms.mul, 6.0),
        (forms.div, 1.5),
        (forms.maximum, 3.0),
        (forms.minimum, 2.0),
        (forms.compare("ogt"), 1.0),
        (forms.compare("oge"), 1.0),
        (forms.compare("olt"), 0.0),
        (forms.compare("ole"), 0.0),
        (forms.compare("oeq"), 0.0),
        (forms.compare("une"), 1.0),
    ],
)
def test_two_operands(form: Form, expected: float) -> None:
    assert values(form, 3.0, 2.0) == expected


def test_equal_operands_compare_as_equal() -> None:
    held = {name: values(forms.compare(name), 2.0, 2.0) for name in ("oeq", "une", "oge", "ole", "ogt", "olt")}
    assert held == {"oeq": 1, "une": 0, "oge": 1, "ole": 1, "ogt": 0, "olt": 0}


def test_more_operands() -> None:
    assert values(forms.choose, 1.0, 2.0, 3.0) == 2
    assert values(forms.choose, 0.0, 2.0, 3.0) == 3
    assert values(forms.scaled_and_shifted, 2.0, 3.0, 4.0) == 10
    assert values(forms.normalised, 7.0, 1.0, 2.0, 3.0, 5.0) == 41
    assert values(forms.reciprocal, 4.0) == 0.25
    assert values(forms.unary("math.sqrt"), 9.0) == 3
    assert values(forms.unary("math.log"), math.e) == pytest.approx(1)


@pytest.mark.parametrize("x", [-900.0, -1.0, 0.25, 0.5, 0.51, 900.0])
def test_softplus_is_its_operand_above_the_threshold(x: float) -> None:
    expected = x if 2 * x > 1 else max(2 * x, 0.0) / 2 + math.log1p(math.exp(-abs(2 * x))) / 2
    assert values(forms.softplus, x, softplusBeta=2.0, softplusThresh=1.0) == pytest.approx(expected, rel=1e-14)


def test_gelu_is_made_of_the_error_function() -> None:
    class WithErf(NumpyArithmetic):
        def unary(self, name: str, a: np.ndarray) -> np.ndarray:
            return np.asarray(math.erf(float(a))) if name == "math.erf" else super().unary(name, a)

    for x in X:
        assert float(forms.gelu(WithErf(), np.asarray(x))) == pytest.approx(0.5 * x * (1 + math.erf(x / math.sqrt(2))))
