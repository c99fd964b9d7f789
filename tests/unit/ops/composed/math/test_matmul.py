"""Operations made of matrix products, against numpy's on small whole numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from spyre_mlir.errors import ConstraintError
from tests.unit.ops.cases import INF, NAN, agree, budgets, check_samples, entry_of, made, result, sample_shapes

MODULE = "spyre_mlir.ops.composed.math.matmul"

RNG = np.random.default_rng(3)


def whole(*shape: int) -> Any:
    """Small whole numbers of both signs, as floats: sums of products are exact."""
    return RNG.integers(-9, 10, shape).astype(np.float64)


A, B = whole(2, 3, 4), whole(2, 4, 5)
PRODUCTS = {
    "addmm": (whole(3, 5), A[0], B[0], A[0] @ B[0]),
    "baddbmm": (whole(2, 3, 5), A, B, A @ B),
    "addbmm": (whole(3, 5), A, B, (A @ B).sum(0)),
    "addmv": (whole(3), A[0], B[0, :, 0], A[0] @ B[0, :, 0]),
}


@pytest.mark.parametrize("overload", PRODUCTS)
@pytest.mark.parametrize(("beta", "alpha"), [(1, 1), (2, 0.5), (-0.25, 3), (1, -1), (0.5, 1)])
def test_sums_with_products(overload: str, beta: float, alpha: float) -> None:
    value, left, right, product = PRODUCTS[overload]
    for run in (result, made):
        agree(run(overload, value, left, right, beta=beta, alpha=alpha), beta * value + alpha * product)


@pytest.mark.parametrize("overload", PRODUCTS)
def test_a_sum_is_not_scaled_unless_told(overload: str) -> None:
    value, left, right, product = PRODUCTS[overload]
    agree(result(overload, value, left, right), value + product)


@pytest.mark.parametrize("overload", PRODUCTS)
def test_a_beta_of_0_drops_what_is_no_number(overload: str) -> None:
    value, left, right, product = PRODUCTS[overload]
    gone = np.full_like(value, NAN)
    gone.flat[0] = INF
    for run in (result, made):
        agree(run(overload, gone, left, right, beta=0, alpha=2), 2 * product)


@pytest.mark.parametrize("overload", PRODUCTS)
def test_integers_take_whole_factors(overload: str) -> None:
    value, left, right, product = (x.astype(np.int64) for x in PRODUCTS[overload])
    for run in (result, made):
        agree(run(overload, value, left, right, beta=2.75, alpha=3.5), 2 * value + 3 * product)


def test_the_shape_of_a_sum_is_that_of_the_product() -> None:
    entry = entry_of("addmm")
    assert [sample_shapes(entry, s) for s in entry.samples] == [[(3, 4)], [(3, 4)]]


def test_bilinear_forms() -> None:
    x, y, weight, bias = whole(2, 3, 4), whole(2, 3, 5), whole(6, 4, 5), whole(6)
    wanted = np.einsum("abi,oij,abj->abo", x, weight, y)
    agree(result("bilinear", x, y, weight), wanted)
    agree(result("bilinear", x, y, weight, bias), wanted + bias)


def test_inputs_of_a_bilinear_form_agree() -> None:
    with pytest.raises(ConstraintError, match=r"C1: inputs of shapes \(2, 4\) and \(3, 5\)"):
        result("bilinear", whole(2, 4), whole(3, 5), whole(6, 4, 5))


def test_products_of_three() -> None:
    x, y, z = whole(2, 3), whole(5, 3, 4), whole(2, 4)
    expanded = {"expand1": (3, 1), "expand2": (0,), "expand3": (1, 2)}
    product = x[:, None, :, None] * y[None] * z[:, None, None, :]
    agree(result("_trilinear", x, y, z, sumdim=(2, 3), **expanded), product.sum((2, 3)))
    agree(result("_trilinear", x, y, z, sumdim=(), **expanded), product)


def test_errors_that_are_allowed() -> None:
    wanted = {"addmm": (16, True)} | dict.fromkeys(("baddbmm", "addbmm", "addmv", "bilinear", "trilinear"), (16, False))
    assert budgets(MODULE) == wanted


def test_samples_fit() -> None:
    check_samples(MODULE)
