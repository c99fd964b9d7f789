"""Means, variances and extremes in pairs, against numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from spyre_mlir.ops.composed.reductions import statistics
from tests.unit.ops.evaluation import (
    INF,
    NAN,
    all_same,
    budgets,
    calling,
    check_samples,
    defaults,
    made,
    results,
    run,
    same,
    taking_apart,
    types,
)

X = np.arange(24.0).reshape(2, 3, 4) ** 1.5 - 20.0
DIMS: list[Any] = [(-1,), (0, 2), (1,), (), None]


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("form", [calling, taking_apart])
def test_means(form: Callable[..., Any], dim: Any, keepdim: bool) -> None:
    same(run(form("mean.dim", dim=dim, keepdim=keepdim), X)[0], np.mean(X, dim or None, keepdims=keepdim))


def test_a_mean_is_divided_by_a_count() -> None:
    """A count is exact on the device, one over it is not."""
    assert made(taking_apart("mean.dim", dim=(0,)), X) == ["sum.dim_IntList", "div.Tensor"]
    assert types(calling("mean.dim", dim=(0, -1), keepdim=True), X) == [((1, 3, 1), "f32")]


@pytest.mark.parametrize("dim", [None, 0, -1])
@pytest.mark.parametrize("keepdim", [False, True])
def test_both_extremes(dim: int | None, keepdim: bool) -> None:
    got = results("aminmax", X, dim=dim, keepdim=keepdim)
    all_same(got, [X.min(dim, keepdims=keepdim), X.max(dim, keepdims=keepdim)])


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize(
    ("given", "less"), [({}, 1), ({"correction": 0}, 0), ({"correction": 2}, 2), ({"correction": 0.5}, 0.5)]
)
def test_variances(dim: Any, keepdim: bool, given: dict[str, Any], less: float) -> None:
    axis, facts = dim or None, {"dim": dim, "keepdim": keepdim} | given
    with np.errstate(all="ignore"):
        mean, variance = X.mean(axis, keepdims=keepdim), X.var(axis, ddof=less, keepdims=keepdim)
    for name, wanted in (("var", variance), ("std", np.sqrt(variance))):
        same(results(f"{name}.correction", X, **facts)[0], wanted)
        all_same(results(f"{name}_mean.correction", X, **facts), [wanted, mean])


def test_a_count_is_never_below_zero() -> None:
    same(results("var.correction", np.array([[1.0, 3.0]]), dim=(1,), correction=5)[0], [INF])
    same(results("std.correction", np.array([2.0]))[0], NAN)
    same(results("var.correction", np.array([1.0, 3.0]), correction=1.5)[0], 4.0)


def test_declarations() -> None:
    check_samples(statistics.__name__)
    moments = dict.fromkeys(("var", "std", "var_mean", "std_mean"), (16, False))
    assert budgets(statistics.__name__) == moments | {"mean": (8, True), "aminmax": (1, False)}
    assert defaults(statistics.__name__) == {("dim", None), ("keepdim", False), ("dtype", None), ("correction", None)}
