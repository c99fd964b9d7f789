"""Sums, products and sums of exponentials, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from spyre_mlir.ops.composed.reductions import sums
from spyre_mlir.ops.composed.reductions.sums import finite, mean_over
from tests.unit.ops.evaluation import (
    INF,
    NAN,
    budgets,
    calling,
    check_samples,
    defaults,
    made,
    result,
    run,
    same,
    types,
)

X = np.array([[[1.5, -2.0, 0.5], [3.0, 0.25, -1.0]], [[-0.5, 4.0, 2.0], [1.0, -3.0, 0.75]]])
DIMS: list[Any] = [(-1,), (0, 2), (1,), None]


@pytest.mark.parametrize("dtype", [None, "f32"])
def test_folds_of_all_elements(dtype: str | None) -> None:
    same(result("sum", X, dtype=dtype), X.sum())
    same(result("mean", X, dtype=dtype), X.mean())
    same(result("prod", X, dtype=dtype), X.prod())


@pytest.mark.parametrize("overload", ["sum", "mean", "prod", "nansum"])
@pytest.mark.parametrize(("given", "element"), [({}, "f16"), ({"dtype": "f32"}, "f32")])
def test_the_element_type_of_the_result(overload: str, given: dict[str, Any], element: str) -> None:
    for shape in ((2, 3), (0, 3)):
        assert types(calling(overload, **given), np.zeros(shape, np.float16)) == [((), element)]


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("keepdim", [False, True])
def test_products(dim: Any, keepdim: bool) -> None:
    for count in range(1, 8):
        x = np.resize(X, (2, count, 3))
        same(result("prod.dim_int", x, dim=dim, keepdim=keepdim), x.prod(dim, keepdims=keepdim))


def test_a_product_by_halves() -> None:
    """Eleven elements are five pairs and one left over, then two and one, then one: two are left, one at a time."""
    ops = made(calling("prod.dim_int", dim=(0,)), np.zeros(11))
    assert ops.count("mul.Tensor") == 3 + 1 + 1


def test_products_of_truth_values_and_of_nothing() -> None:
    same(result("prod.dim_int", np.array([[True, True], [True, False]]), dim=(1,)), [1, 0])
    assert types(calling("prod"), np.zeros(3, np.bool_)) == [((), "i64")]
    assert types(calling("prod", dtype="f32"), np.zeros(3, np.bool_)) == [((), "f32")]
    same(result("prod.dim_int", np.zeros((2, 0)), dim=(1,), keepdim=True), [[1.0], [1.0]])
    same(result("prod", np.zeros((2, 0))), 1.0)


@pytest.mark.parametrize("dim", DIMS[:-1])
@pytest.mark.parametrize("keepdim", [False, True])
def test_the_logarithm_of_a_sum_of_exponentials(dim: Any, keepdim: bool) -> None:
    for x in (X, X * 500.0):
        wanted = np.logaddexp.reduce(x, dim, keepdims=keepdim)
        same(result("logsumexp", x, dim=dim, keepdim=keepdim), wanted)


def test_exponentials_of_infinities_and_of_nothing() -> None:
    x = np.array([[-INF, -INF], [INF, 1.0], [-INF, 2.0], [NAN, 1.0]])
    same(result("logsumexp", x, dim=(1,)), [-INF, INF, 2.0, NAN])
    same(result("logsumexp", np.zeros((2, 0)), dim=(-1,)), [-INF, -INF])
    same(result("logsumexp", np.zeros((2, 0)), dim=(1,), keepdim=True), [[-INF], [-INF]])


def test_a_peak_is_finite() -> None:
    same(run(finite, np.array([INF, -INF, 3.0, -4.0, NAN]))[0], [0.0, 0.0, 3.0, -4.0, NAN])


HOLES = np.array([[1.0, NAN, -3.0], [NAN, NAN, 0.5]])


@pytest.mark.parametrize("dim", [(0,), (-1,), None])
@pytest.mark.parametrize("keepdim", [False, True])
def test_sums_of_what_is_a_number(dim: Any, keepdim: bool) -> None:
    same(result("nansum", HOLES, dim=dim, keepdim=keepdim), np.nansum(HOLES, dim, keepdims=keepdim))


@pytest.mark.parametrize("x", [HOLES * 0.0 + [0.0, 1.0, 2.0], np.array([[0, 3, -1], [0, 0, 2]]), HOLES > 0])
def test_elements_that_are_not_zero_are_counted(x: np.ndarray) -> None:
    same(result("count_nonzero", x), np.count_nonzero(x))
    for dim in (0, -1):
        same(result("count_nonzero.dim_IntList", x, dim=(dim,)), np.count_nonzero(x, dim))


def test_means_over_dimensions() -> None:
    same(run(lambda b, x: mean_over(x, (0, 2)), X)[0], X.mean((0, 2)))
    same(run(lambda b, x: mean_over(x, (1,), keepdim=True), X)[0], X.mean(1, keepdims=True))
    same(run(lambda b, x: mean_over(x, None), X)[0], X.mean())
    same(run(lambda b, x: mean_over(x, None), np.zeros(0))[0], NAN)


def test_declarations() -> None:
    check_samples(sums.__name__)
    wanted = {"sum_of_all": (8, True), "mean_of_all": (8, True), "product": (16, True), "logsumexp": (16, True)}
    assert budgets(sums.__name__) == wanted | {"nansum": (8, True), "count_nonzero": (0, False)}
    assert defaults(sums.__name__) == {("dim", None), ("keepdim", False), ("dtype", None)}
