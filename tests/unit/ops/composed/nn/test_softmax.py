"""Softmax and its logarithm, against numpy, and rows that are masked altogether."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from spyre_mlir.ops.composed.nn import softmax
from tests.unit.ops.evaluation import (
    INF,
    NAN,
    budgets,
    calling,
    check_samples,
    defaults,
    result,
    run,
    same,
    taking_apart,
    types,
)

X = np.array([[1.0, -2.0, 3.0], [0.5, 700.0, 800.0]])


def wanted(x: np.ndarray, dim: int) -> np.ndarray:
    out = np.exp(x - x.max(dim, keepdims=True))
    return out / out.sum(dim, keepdims=True)


@pytest.mark.parametrize("dim", [-1, 0, 1])
@pytest.mark.parametrize("form", [calling, taking_apart])
@pytest.mark.parametrize(("overload", "more"), [("softmax.int", {"dtype": "f32"}), ("_softmax", {})])
def test_softmax(form: Callable[..., Any], overload: str, more: dict[str, Any], dim: int) -> None:
    same(run(form(overload, dim=dim, **more), X)[0], wanted(X, dim))


@pytest.mark.parametrize("dim", [-1, 0, 1])
@pytest.mark.parametrize("overload", ["log_softmax.int", "_log_softmax"])
def test_the_logarithm_does_not_overflow(overload: str, dim: int) -> None:
    peak = X.max(dim, keepdims=True)
    same(result(overload, X, dim=dim), X - peak - np.log(np.exp(X - peak).sum(dim, keepdims=True)))


@pytest.mark.parametrize("dim", [-1, 0, 1])
def test_a_safe_softmax_is_one(dim: int) -> None:
    same(result("_safe_softmax", X, dim=dim), wanted(X, dim))


@pytest.mark.parametrize("form", [calling, taking_apart])
@pytest.mark.parametrize("dim", [-1, 0])
def test_one_number_beside_a_row_has_a_part(dim: int, form: Callable[..., Any]) -> None:
    other = np.full([1 if d == dim % 2 else n for d, n in enumerate(X.shape)], 4.0)
    got = run(form("spyre::softmax_beside", dim=dim), X, other)[0]
    same(got, wanted(np.concatenate([X, other], dim), dim)[: X.shape[0], : X.shape[1]])


def test_a_row_with_nothing_left_is_zero() -> None:
    lowest = float(np.finfo(np.float16).min)
    x = np.array([[-INF, -INF], [lowest, lowest], [-INF, -3.0], [lowest + 32, lowest + 32], [NAN, 1.0]])
    rows = [[0.0, 0.0], [0.0, 0.0], [0.0, 1.0], [0.5, 0.5], [NAN, NAN]]
    same(result("_safe_softmax", x, dim=-1), rows)


@pytest.mark.parametrize(
    ("overload", "more", "element"),
    [
        ("log_softmax.int", {}, "f16"),
        ("log_softmax.int", {"dtype": "f32"}, "f32"),
        ("_log_softmax", {"half_to_float": True}, "f32"),
        ("_log_softmax", {"half_to_float": False}, "f16"),
        ("_safe_softmax", {}, "f16"),
        ("_safe_softmax", {"dtype": "f32"}, "f32"),
    ],
)
def test_the_element_type_of_the_result(overload: str, more: dict[str, Any], element: str) -> None:
    assert types(calling(overload, dim=0, **more), X.astype(np.float16)) == [((2, 3), element)]


def test_declarations() -> None:
    check_samples(softmax.__name__)
    assert set(budgets(softmax.__name__).values()) == {(16, True)}
    assert defaults(softmax.__name__) == {("dtype", None), ("half_to_float", False)}
