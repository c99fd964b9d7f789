"""Operators of the namespace `spyre` against their formulas in numpy."""

from __future__ import annotations

from math import erf, sqrt
from typing import Any

import numpy as np
import pytest

from tests.unit.ops.cases import Array, agree, budgets, check_samples, result

MODULE = "spyre_mlir.ops.spyre_ops"

RNG = np.random.default_rng(6)
X = np.array([[-2.0, -0.5, 0.0, 0.25], [1.0, 3.0, -4.0, 0.5]])


def deviations(x: Array, eps: float) -> Array:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps)


def gelu(x: Array) -> Array:
    return x * (1 + np.vectorize(erf)(x / sqrt(2))) / 2


def gelu_by_tanh(x: Array) -> Array:
    return x * (1 + np.tanh(sqrt(2 / np.pi) * (x + 0.044715 * x**3))) / 2


FORMULAS: list[tuple[str, dict[str, Any], Array]] = [
    ("clamp", {"min": -0.5, "max": 1.0}, np.clip(X, -0.5, 1.0)),
    ("clamp", {"min": 0.125}, np.maximum(X, 0.125)),
    ("clamp", {"max": 0.0}, np.minimum(X, 0.0)),
    ("softplus", {}, np.log1p(np.exp(X))),
    ("softplus", {"beta": 2.0, "threshold": 1.5}, np.where(2 * X > 1.5, X, np.log1p(np.exp(2 * X)) / 2)),
    ("gelu", {}, gelu(X)),
    ("gelu", {"approximate": "none"}, gelu(X)),
    ("gelu", {"approximate": "tanh"}, gelu_by_tanh(X)),
    ("silu", {}, X / (1 + np.exp(-X))),
    ("logical_not", {}, X == 0),
    ("restickify", {}, X),
    ("compact", {}, X),
    ("copy_forced", {}, X),
    ("tile_dim_marker", {"dim": 1}, X),
    ("exx2", {"scale": 0.25}, np.stack([X.sum(-1), (X * X).sum(-1)], -1) / 4),
    ("exx2", {"scale": 0.5, "use_zero_mean": True}, np.stack([[0.0, 0.0], (X * X).sum(-1) / 2], -1)),
    ("topkvalue", {"k": 2}, np.array([[0.25, 0.0], [3.0, 1.0]])),
    ("topkindex", {"k": 2}, np.array([[3, 2], [1, 0]])),
    ("topkvalue", {"k": 1, "dim": 0, "largest": False}, X.min(0, keepdims=True)),
    ("topkindex", {"k": 1, "dim": 0, "largest": False}, X.argmin(0)[None]),
    ("quantscalepertokenfp8", {}, np.array([[2.0], [4.0]]) / 448),  # the largest number of E4M3
    ("quantscalepertokenfp8", {"scale_ub": 2.0}, np.array([[1.0], [2.0]])),
]


@pytest.mark.parametrize(("name", "facts", "wanted"), FORMULAS)
def test_formulas(name: str, facts: dict[str, Any], wanted: Array) -> None:
    agree(result(f"spyre::{name}", X, **facts), wanted, rtol=3e-7, atol=1e-12)


def test_beyond_20_the_logarithm_of_an_exponential_is_its_exponent() -> None:
    agree(result("spyre::softplus", np.array([20.5, 700.0])), [20.5, 700.0], rtol=0)
    agree(result("spyre::softplus", np.array([19.5])), [np.log1p(np.exp(19.5))], rtol=1e-15)


def test_normalisation_over_the_last_dimensions() -> None:
    x, weight, bias = RNG.normal(size=(3, 2, 4)), RNG.normal(size=4), RNG.normal(size=4)
    agree(result("spyre::layer_norm", x, normalized_shape=(4,)), deviations(x, 1e-5))
    got = result("spyre::layer_norm", x, weight, bias, normalized_shape=(4,), eps=0.5)
    agree(got, deviations(x, 0.5) * weight + bias)
    flat = deviations(x.reshape(3, 8), 1e-5).reshape(x.shape)
    agree(result("spyre::layer_norm", x, normalized_shape=(2, 4)), flat)
    root = np.sqrt((x * x).mean(-1, keepdims=True) + 0.25)
    agree(result("spyre::rms_norm", x, weight, normalized_shape=(4,), eps=0.25), x / root * weight)
    agree(result("spyre::rms_norm", x, normalized_shape=(4,), eps=0.25), x / root)


def test_a_normalisation_in_three_steps() -> None:
    weight, bias = RNG.normal(size=4), RNG.normal(size=4)
    moments = result("spyre::exx2", X, scale=0.25)
    scale = result("spyre::layernormscale", moments, eps=0.5)
    agree(scale, 1 / np.sqrt(X.var(-1, keepdims=True) + 0.5))
    agree(result("spyre::layernormnorm", X, moments, scale, weight, bias), deviations(X, 0.5) * weight + bias)


def test_batches_of_matrices_broadcast() -> None:
    a, b = RNG.normal(size=(2, 1, 3, 4)), RNG.normal(size=(5, 4, 2))
    agree(result("spyre::batched_matmul", a, b), a @ b, rtol=1e-10)


@pytest.mark.parametrize("name", ["conv2d", "conv2d_with_bias"])
def test_convolution(name: str) -> None:
    x, weight, bias = (RNG.integers(-4, 5, s).astype(float) for s in ((1, 4, 5, 6), (6, 2, 2, 3), (6,)))
    facts = {"stride": (1, 2), "padding": (1, 0), "dilation": (2, 1), "groups": 2}
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (0, 0)))
    wanted = np.zeros((1, 6, 5, 2))
    for channel, i, j in np.ndindex(6, 5, 2):
        own = slice(channel // 3 * 2, channel // 3 * 2 + 2)
        wanted[0, channel, i, j] = (padded[0, own, i : i + 3 : 2, 2 * j : 2 * j + 3] * weight[channel]).sum()
    agree(result(f"spyre::{name}", x, weight, **facts), wanted)
    agree(result(f"spyre::{name}", x, weight, bias, **facts), wanted + bias[:, None, None])


def test_a_block_is_overwritten() -> None:
    block, whole = np.arange(1.0, 7.0).reshape(2, 3), np.zeros((5, 7))
    wanted = whole.copy()
    wanted[1:3, 4:7] = block
    agree(result("spyre::overwrite_f", block, whole, dims=(0, 1), offsets=(1, 4)), wanted)
    agree(result("spyre::overwrite_f", block, whole, dims=(1, 0), offsets=(4, 1)), wanted)
    agree(result("spyre::overwrite_f", block, np.zeros((2, 5)), dims=(1,), offsets=(2,)), wanted[1:3, 2:7])


def test_an_index_keeps_elements_of_its_row() -> None:
    agree(result("spyre::keep_by_index", X, np.array([[3, 0, 0], [2, 1, 3]])), [[0.25, -2.0, -2.0], [-4.0, 3.0, 0.5]])


@pytest.mark.parametrize(("window", "scale"), [(1, None), (3, 0.25), (9, None)])
@pytest.mark.parametrize("keys", [5, 7])
def test_queries_see_the_last_keys_up_to_their_place(keys: int, window: int, scale: float | None) -> None:
    q, k, v = (RNG.normal(size=(2, n, w)) for n, w in ((5, 4), (keys, 4), (keys, 3)))
    scores = np.exp(q @ k.swapaxes(1, 2) * (0.5 if scale is None else scale))
    for row, column in np.ndindex(5, keys):
        own = row + keys - 5
        scores[:, row, column] *= own - window < column <= own
    wanted = scores / scores.sum(-1, keepdims=True) @ v
    agree(result("spyre::sliding_window_attention", q, k, v, window=window, scale=scale), wanted, rtol=1e-9)


def test_errors_that_are_allowed() -> None:
    moved = "spyre_logical_not topkvalue topkindex spyre_copy tile_dim_marker overwrite_f keep_by_index"
    sums = "spyre_layer_norm spyre_rms_norm exx2 layernormscale layernormnorm batched_matmul spyre_conv2d"
    wanted = dict.fromkeys(moved.split(), (0, False)) | dict.fromkeys(sums.split(), (16, False))
    wanted |= dict.fromkeys(("spyre_softplus", "spyre_gelu", "spyre_silu", "quantscalepertokenfp8"), (4, False))
    wanted |= {"spyre_clamp": (1, False), "sliding_window_attention": (16, False)}
    assert budgets(MODULE) == wanted


def test_samples_fit() -> None:
    check_samples(MODULE)
