"""Norms and distances, against numpy.linalg.norm."""

from __future__ import annotations

import numpy as np
import pytest

from spyre_mlir.ops.composed.reductions import norms
from tests.unit.ops.evaluation import INF, NAN, budgets, calling, check_samples, defaults, made, result, same, types

X = np.array([[3.0, -4.0, 0.5], [-1.0, 2.0, -2.5]])
Y = np.array([[1.0, 1.0, -2.0], [0.0, 2.0, 5.0], [4.0, -1.0, 1.0], [3.0, -4.0, 2.0]])
ORDERS = [0, 1, 2, 3, 0.5, 2.5, -1, -2, -0.5, INF, -INF]


@pytest.mark.parametrize("order", ORDERS)
def test_norms_of_vectors(order: float) -> None:
    for dim in (0, -1):
        same(result("linalg_vector_norm", X, ord=order, dim=(dim,)), np.linalg.norm(X, order, dim))
    kept = result("linalg_vector_norm", X, ord=order, dim=(1,), keepdim=True)
    same(kept, np.linalg.norm(X, order, 1, keepdims=True))
    same(result("linalg_vector_norm", X, ord=order), np.linalg.norm(X.ravel(), order))
    same(
        result("linalg_vector_norm", X, ord=order, dim=(0, 1), keepdim=True),
        np.full((1, 1), np.linalg.norm(X.ravel(), order)),
    )


def test_the_order_is_two_unless_given() -> None:
    same(result("linalg_vector_norm", X, dim=(0,)), np.linalg.norm(X, 2, 0))
    same(result("dist", X, Y[:2]), np.linalg.norm(X - Y[:2]))
    same(result("_pdist_forward", X), [np.linalg.norm(X[0] - X[1])])


@pytest.mark.parametrize(("order", "wanted"), [(3, 0.0), (0, 1.0), (2, 2.0), (-2, 0.0), (-INF, 0.0), (0.5, 2.0)])
def test_zeros(order: float, wanted: float) -> None:
    x = np.zeros(3) if order == 3 else np.array([0.0, -2.0, 0.0])
    same(result("linalg_vector_norm", x, ord=order), wanted)


@pytest.mark.parametrize(("order", "wanted"), [(3, INF), (2, INF), (-2, 2.0), (0.5, INF), (INF, INF), (0, 2.0)])
def test_infinities(order: float, wanted: float) -> None:
    same(result("linalg_vector_norm", np.array([-INF, 2.0]), ord=order), wanted)
    if order < 0:
        same(result("linalg_vector_norm", np.array([-INF, INF]), ord=order), INF)


@pytest.mark.parametrize("order", [1, 2, 3, -2, INF])
def test_what_is_not_a_number_stays(order: float) -> None:
    same(result("linalg_vector_norm", np.array([1.0, NAN]), ord=order), NAN)


@pytest.mark.parametrize("order", [3, -3])
def test_high_powers_stay_in_range(order: float) -> None:
    """The device squares nothing beyond 2^33: sizes are divided by the one that decides first."""
    x = np.array([3e9, -2e9])
    ops = made(calling("linalg_vector_norm", ord=order), x)
    assert ops.index("div.Tensor") < ops.index("sum.dim_IntList")
    same(result("linalg_vector_norm", x, ord=order), np.linalg.norm(x, order))


@pytest.mark.parametrize(("order", "wanted"), [(2, 0.0), (0, 0.0), (-1, INF), (3, 0.0)])
def test_the_norm_of_nothing(order: float, wanted: float) -> None:
    empty = np.zeros((2, 0))
    same(result("linalg_vector_norm", empty, ord=order, dim=(1,)), np.full(2, wanted))
    same(result("linalg_vector_norm", empty, ord=order, keepdim=True), np.full((1, 1), wanted))


def test_the_element_type_of_the_result() -> None:
    half = X.astype(np.float16)
    assert types(calling("linalg_vector_norm", dim=(1,)), half) == [((2,), "f16")]
    assert types(calling("linalg_vector_norm", dim=(1,), dtype="f32"), half) == [((2,), "f32")]
    assert types(calling("linalg_vector_norm", dtype="f32"), half[:, :0]) == [((), "f32")]
    assert types(calling("linalg_vector_norm", ord=0), half) == [((), "f16")]


@pytest.mark.parametrize("order", [0, 1, 2, 3.0, INF])
def test_distances(order: float) -> None:
    same(result("dist", X, Y[1:2], p=order), np.linalg.norm((X - Y[1:2]).ravel(), order))
    every = np.linalg.norm(X[:, None] - Y[None], order, -1)
    same(result("_cdist_forward", X, Y, p=order), every)
    batches = result("_cdist_forward", np.stack([X, -X]), np.stack([Y, Y]), p=order, compute_mode=1)
    same(batches, np.stack([every, np.linalg.norm(-X[:, None] - Y[None], order, -1)]))
    rows, columns = np.triu_indices(4, 1)
    same(result("_pdist_forward", Y, p=order), np.linalg.norm(Y[rows] - Y[columns], order, -1))


@pytest.mark.parametrize("count", [0, 1])
def test_one_row_has_no_distances(count: int) -> None:
    same(result("_pdist_forward", X[:count]), np.zeros(0))
    assert types(calling("_pdist_forward"), X[:count].astype(np.float16)) == [((0,), "f16")]


def test_declarations() -> None:
    check_samples(norms.__name__)
    assert budgets(norms.__name__) == dict.fromkeys(("linalg_vector_norm", "dist", "cdist", "pdist"), (16, True))
    assert defaults(norms.__name__) == {
        ("ord", 2),
        ("p", 2),
        ("dim", None),
        ("keepdim", False),
        ("dtype", None),
        ("compute_mode", None),
    }
