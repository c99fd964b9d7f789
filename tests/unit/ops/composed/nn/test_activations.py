"""Activation functions against their formulas in numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.hw.number_formats.dl16 import round_trip
from tests.unit.ops.cases import INF, NAN, agree, budgets, check_samples, entry_of, result, results, ulps_off

MODULE = "spyre_mlir.ops.composed.nn.activations"

X = np.array([[-9.0, -3.5, -3.0, -2.0, -0.5, -0.25], [0.0, 0.25, 0.5, 2.0, 3.5, 7.0]])
ALPHA, SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946  # Klambauer et al. 2017


def below(x: Any, slope: Any) -> Any:
    return np.where(x > 0, x, slope)


def logistic(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


CASES: list[tuple[str, dict[str, Any], Callable[[Any], Any]]] = [
    ("hardtanh", {}, lambda x: np.clip(x, -1, 1)),
    ("hardtanh", {"min_val": -0.5, "max_val": 3}, lambda x: np.clip(x, -0.5, 3)),
    ("relu6", {}, lambda x: np.clip(x, 0, 6)),
    ("leaky_relu", {}, lambda x: below(x, 0.01 * x)),
    ("leaky_relu", {"negative_slope": 0.5}, lambda x: below(x, 0.5 * x)),
    ("leaky_relu", {"negative_slope": 1}, lambda x: x),
    ("leaky_relu", {"negative_slope": 1.5}, lambda x: below(x, 1.5 * x)),
    ("leaky_relu", {"negative_slope": -2}, lambda x: below(x, -2.0 * x)),
    ("elu", {}, lambda x: below(x, np.expm1(x))),
    ("elu", {"alpha": 0.5}, lambda x: below(x, 0.5 * np.expm1(x))),
    ("elu", {"scale": 3}, lambda x: 3 * below(x, np.expm1(x))),
    ("elu", {"alpha": 0.5, "scale": 2, "input_scale": 1.5}, lambda x: 2 * below(x, 0.5 * np.expm1(1.5 * x))),
    ("celu", {}, lambda x: below(x, np.expm1(x))),
    ("celu", {"alpha": 0.5}, lambda x: below(x, 0.5 * np.expm1(x / 0.5))),
    ("selu", {}, lambda x: SCALE * below(x, ALPHA * np.expm1(x))),
    ("hardsigmoid", {}, lambda x: np.clip(x + 3, 0, 6) / 6),
    ("hardswish", {}, lambda x: x * np.clip(x + 3, 0, 6) / 6),
    ("softshrink", {}, lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0)),
    ("softshrink", {"lambd": 0.3}, lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.3, 0)),
    ("log_sigmoid", {}, lambda x: np.log(logistic(x))),
]


@pytest.mark.parametrize(("overload", "facts", "function"), CASES)
def test_formulas(overload: str, facts: dict[str, Any], function: Callable[[Any], Any]) -> None:
    agree(result(overload, X, **facts), function(X), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("overload", ["elu", "selu", "celu", "hardswish", "log_sigmoid", "leaky_relu"])
def test_steps_in_dl16_keep_the_error(overload: str) -> None:
    x = round_trip(np.concatenate([np.linspace(-2.7, -0.1, 60), np.linspace(0.1, 5.0, 60)]))
    function = next(f for o, facts, f in CASES if o == overload and not facts)
    assert ulps_off(overload, function(x), x) <= entry_of(overload).ulps


def test_what_is_no_number_stays_so() -> None:
    for overload in ("hardtanh", "relu6", "leaky_relu", "elu", "hardswish", "softshrink"):
        agree(result(overload, np.array([NAN])), [NAN])


def test_infinity_stays_so_where_nothing_is_left_below_zero() -> None:
    agree(result("leaky_relu", np.array([INF, 2.0, -3.0, NAN]), negative_slope=0.0), [INF, 2.0, 0.0, NAN])


def test_no_large_number_overflows_under_the_logarithm_of_the_sigmoid() -> None:
    agree(result("log_sigmoid", np.array([-800.0, 800.0, -INF])), [-800.0, 0.0, -INF])


def test_the_sigmoid_and_what_its_derivative_needs() -> None:
    out, rest = results("log_sigmoid_forward", X)
    agree(out, np.log(logistic(X)), rtol=1e-12, atol=1e-15)
    agree(rest, np.exp(-np.abs(X)))


def test_each_channel_has_its_slope() -> None:
    x = np.array([[[-1.0, 2.0], [-3.0, 4.0], [-5.0, 6.0]], [[7.0, -8.0], [9.0, -10.0], [11.0, -12.0]]])
    slopes = np.array([0.5, 2.0, -1.0])
    wanted = below(x, x * slopes[:, None])
    agree(result("prelu", x, slopes), wanted)
    agree(result("prelu", x, slopes.reshape(1, 3, 1)), wanted)
    agree(result("_prelu_kernel", x, slopes.reshape(1, 3, 1)), wanted)
    agree(result("prelu", x[0, :, :1].T, slopes), below(x[0, :, 0], x[0, :, 0] * slopes)[None])


def test_one_slope_serves_all_channels() -> None:
    agree(result("prelu", X, np.array([0.5])), below(X, 0.5 * X))
    agree(result("prelu", X[0], np.array([0.5])), below(X[0], 0.5 * X[0]))
    agree(result("prelu", np.array(-4.0), np.array([0.5])), -2.0)


@pytest.mark.parametrize("dim", [-1, 0, 1, -2])
def test_half_of_the_elements_gate_the_others(dim: int) -> None:
    first, second = np.split(X, 2, dim)
    agree(result("glu", X, dim=dim), first * logistic(second))
    if dim == -1:
        agree(result("glu", X), first * logistic(second))


def test_a_random_slope_is_the_mean_of_its_bounds() -> None:
    noise = X * 3
    out, kept = results("rrelu_with_noise_functional", X, noise, lower=0.25, upper=0.5)
    agree(out, below(X, 0.375 * X))
    agree(kept, noise)
    agree(results("rrelu_with_noise_functional", X, noise)[0], below(X, (1 / 8 + 1 / 3) / 2 * X))
    with pytest.raises(UnsupportedError, match=r"a randomised unit in training\n  try: call model\.eval\(\) before"):
        results("rrelu_with_noise_functional", X, noise, training=True)


def test_errors_that_are_allowed() -> None:
    ulps = {"hardtanh": 1, "relu6": 1, "softshrink": 1, "leaky_relu": 2, "prelu": 2, "prelu_kernel": 2}
    ulps |= {"hardsigmoid": 2} | dict.fromkeys(("elu", "celu", "selu", "hardswish"), 4)
    ulps |= {"log_sigmoid": 4, "log_sigmoid_forward": 4}
    wanted = {name: (u, True) for name, u in ulps.items()} | {"glu": (4, False), "rrelu": (2, False)}
    assert budgets(MODULE) == wanted


def test_samples_fit() -> None:
    check_samples(MODULE)
