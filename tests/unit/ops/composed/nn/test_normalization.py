"""Normalisation, against means and variances of numpy, and its gradient against differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.ops.composed.nn import normalization
from tests.unit.ops.evaluation import (
    all_same,
    budgets,
    calling,
    check_samples,
    defaults,
    result,
    results,
    run,
    same,
    taking_apart,
    types,
)

RNG = np.random.default_rng(3)
X = RNG.normal(size=(2, 4, 3)) * 2.0 + 0.5
W, B = np.array([2.0, -1.0, 0.5]), np.array([0.25, 3.0, -4.0])  # along the last dimension
CW, CB = np.array([2.0, -1.0, 0.5, 3.0]), np.array([0.25, 3.0, -4.0, 1.0])  # along the channels
MEAN, VARIANCE = np.array([0.5, -1.0, 2.0, 0.0]), np.array([4.0, 0.5, 1.0, 2.25])
SMALLEST = 2.0**-31 * (1 + 2.0**-9)  # of DL16
BOTH = [calling, taking_apart]


def channels(vector: np.ndarray | float) -> np.ndarray:
    return np.reshape(vector, (-1, 1))


def statistics(x: np.ndarray, axes: tuple[int, ...], eps: float) -> tuple[np.ndarray, np.ndarray]:
    """The mean and one over the deviation, kept as dimensions of 1."""
    return x.mean(axes, keepdims=True), 1 / np.sqrt(x.var(axes, keepdims=True) + eps)


def normal(x: np.ndarray, axes: tuple[int, ...], eps: float) -> np.ndarray:
    mean, inverse = statistics(x, axes, eps)
    return (x - mean) * inverse


def test_an_epsilon_is_a_number_of_the_device() -> None:
    assert [normalization.floored(e) for e in (0.5, 0, 1e-12, -0.5)] == [0.5, 0, SMALLEST, -0.5]


@pytest.mark.parametrize("form", BOTH)
def test_root_mean_square(form: Callable[..., Any]) -> None:
    def wanted(x: np.ndarray, axes: tuple[int, ...], eps: float) -> np.ndarray:
        return x / np.sqrt((x * x).mean(axes, keepdims=True) + eps)

    same(run(form("rms_norm", normalized_shape=(3,), eps=0.5), X, W)[0], wanted(X, (-1,), 0.5) * W)
    same(run(form("rms_norm", normalized_shape=(4, 3), eps=0.5), X)[0], wanted(X, (1, 2), 0.5))
    small = X * 1e-4
    same(run(form("rms_norm", normalized_shape=(3,)), small, None)[0], wanted(small, (-1,), 2.0**-23))


def test_an_epsilon_below_the_device_is_raised_in_the_parts_alone() -> None:
    zero = np.array([[1e-6, 0.0]])
    (parts,) = run(taking_apart("rms_norm", normalized_shape=(2,), eps=1e-12), zero)
    same(parts, zero / np.sqrt(0.5e-12 + SMALLEST))
    (whole,) = run(calling("rms_norm", normalized_shape=(2,), eps=1e-12), zero)
    same(whole, zero / np.sqrt(0.5e-12 + 1e-12))


@pytest.mark.parametrize("form", BOTH)
def test_layers(form: Callable[..., Any]) -> None:
    one, two = form("layer_norm", normalized_shape=(3,), eps=0.5), form("layer_norm", normalized_shape=(4, 3), eps=0.5)
    same(run(one, X, W, B)[0], normal(X, (-1,), 0.5) * W + B)
    same(run(one, X, W, None)[0], normal(X, (-1,), 0.5) * W)
    same(run(one, X, None, B)[0], normal(X, (-1,), 0.5) + B)
    same(run(two, X)[0], normal(X, (1, 2), 0.5))
    small = X * 1e-2
    (default,) = run(form("layer_norm", normalized_shape=(3,), cudnn_enable=False), small)
    same(default, normal(small, (-1,), 1e-5))


def test_layers_with_their_statistics() -> None:
    (out, *rest) = results("native_layer_norm", X, W, B, normalized_shape=(3,), eps=0.5)
    same(out, normal(X, (-1,), 0.5) * W + B)
    all_same(rest, statistics(X, (2,), 0.5))
    all_same(results("native_layer_norm", X, normalized_shape=(4, 3), eps=0.5)[1:], statistics(X, (1, 2), 0.5))


FACTS = {"momentum": 0.25, "eps": 0.5}
BY_KNOWN = (X - channels(MEAN)) / np.sqrt(channels(VARIANCE) + 0.5)
KNOWN = [
    ("_native_batch_norm_legit_no_training", {}),
    ("native_batch_norm", {"training": False}),
    ("_native_batch_norm_legit", {"training": False}),
    ("_native_batch_norm_legit_functional", {"training": False}),
]


@pytest.mark.parametrize(("overload", "more"), KNOWN)
def test_known_statistics(overload: str, more: dict[str, Any]) -> None:
    for weight, bias in ((CW, CB), (CW, None), (None, CB), (None, None)):
        out, *rest = results(overload, X, weight, bias, MEAN, VARIANCE, **more, **FACTS)
        scale, shift = (1.0 if weight is None else weight), (0.0 if bias is None else bias)
        same(out, BY_KNOWN * channels(scale) + channels(shift))
        all_same(rest, [np.zeros(0), np.zeros(0), MEAN, VARIANCE][: len(rest)])


@pytest.mark.parametrize(("overload", "more"), KNOWN)
def test_known_statistics_of_another_type(overload: str, more: dict[str, Any]) -> None:
    found = types(calling(overload, **more, **FACTS), X.astype(np.float16), CW, CB, MEAN, VARIANCE)
    assert found[:3] == [((2, 4, 3), "f16"), ((0,), "f32"), ((0,), "f32")]


TRAINED = [
    ("native_batch_norm", (MEAN, VARIANCE), {"training": True}),
    ("native_batch_norm", (), {"training": False}),
    ("_native_batch_norm_legit.no_stats", (), {"training": True}),
    ("_native_batch_norm_legit_functional", (MEAN, VARIANCE), {"training": True}),
]


@pytest.mark.parametrize(("overload", "known", "more"), TRAINED)
def test_statistics_of_the_batch(overload: str, known: tuple[np.ndarray, ...], more: dict[str, Any]) -> None:
    out, mean, inverse, *_ = results(overload, X, CW, CB, *known, **more, **FACTS)
    same(out, normal(X, (0, 2), 0.5) * channels(CW) + channels(CB))
    all_same([mean, inverse], [s.reshape(4) for s in statistics(X, (0, 2), 0.5)])


def test_running_statistics_move_by_the_momentum() -> None:
    got = results("_native_batch_norm_legit_functional", X, CW, CB, MEAN, VARIANCE, training=True, **FACTS)[3:]
    mean, variance = X.mean((0, 2)), X.var((0, 2), ddof=1)
    all_same(got, [0.75 * MEAN + 0.25 * mean, 0.75 * VARIANCE + 0.25 * variance])


def test_one_element_per_channel_has_no_variance() -> None:
    one = np.array([[1.0, -2.0, 3.0, 0.5]])
    got = results("_native_batch_norm_legit_functional", one, CW, CB, MEAN, VARIANCE, training=True, **FACTS)[3:]
    all_same(got, [0.75 * MEAN + 0.25 * one[0], 0.75 * VARIANCE])


def test_running_statistics_keep_their_type() -> None:
    body = calling("_native_batch_norm_legit_functional", training=True, **FACTS)
    half = X.astype(np.float16)
    found = types(body, half, CW.astype(np.float16), CB.astype(np.float16), MEAN, VARIANCE)
    assert [element for _, element in found] == ["f16", "f16", "f16", "f32", "f32"]


def test_instances() -> None:
    facts = {**FACTS, "cudnn_enabled": False}
    affine = normal(X, (2,), 0.5) * channels(CW) + channels(CB)
    known = BY_KNOWN * channels(CW) + channels(CB)
    same(result("instance_norm", X, CW, CB, use_input_stats=True, **facts), affine)
    same(result("instance_norm", X, CW, CB, MEAN, VARIANCE, use_input_stats=True, **facts), affine)
    same(result("instance_norm", X, CW, CB, use_input_stats=False, **facts), affine)
    same(result("instance_norm", X, CW, CB, MEAN, VARIANCE, use_input_stats=False, **facts), known)


def test_no_statistics_outside_training_are_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"_native_batch_norm_legit\.no_stats with training=False"):
        results("_native_batch_norm_legit.no_stats", X, training=False, momentum=0.1, eps=0.5)


def test_a_mean_without_a_variance_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="a running mean without a running variance") as caught:
        results("native_batch_norm", X, CW, CB, MEAN, training=False, **FACTS)
    assert "give both" in str(caught.value)


def test_declarations() -> None:
    check_samples(normalization.__name__)
    found = budgets(normalization.__name__)
    assert {ulps for ulps, _ in found.values()} == {16}
    assert {name for name, (_, promote) in found.items() if promote} == {"rms_norm", "layer_norm"}
    assert defaults(normalization.__name__) == {
        ("eps", None),
        ("eps", 1e-5),
        ("cudnn_enable", True),
    }
