"""Matrix products, against numpy.matmul, and the forms that vectors and biases take."""

from __future__ import annotations

import numpy as np
import pytest

from spyre_mlir.errors import ConstraintError
from spyre_mlir.ops.native import contractions
from spyre_mlir.ops.native.contractions import linear_shape, product_shape
from spyre_mlir.ops.table import Unit
from tests.unit.ops.evaluation import (
    budgets,
    check_samples,
    defaults,
    entries_in,
    made,
    result,
    run,
    same,
    taking_apart,
    types,
)

RNG = np.random.default_rng(2)
A, B = RNG.normal(size=(2, 3)), RNG.normal(size=(3, 4))
V, W, BIAS = RNG.normal(size=3), RNG.normal(size=(4, 3)), RNG.normal(size=4)
BATCH, OTHER = RNG.normal(size=(5, 1, 2, 3)), RNG.normal(size=(6, 3, 4))


@pytest.mark.parametrize("overload", ["mm", "bmm", "matmul"])
def test_products(overload: str) -> None:
    for left, right in ((A, B), (BATCH, OTHER), (BATCH, B), (A, OTHER), (V, B), (A, V), (V, V), (BATCH, V), (V, OTHER)):
        same(result(overload, left, right), left @ right)


@pytest.mark.parametrize(
    ("left", "right", "unsqueezed"), [(V, B, 1), (A, V, 1), (V, V, 2), (BATCH, V, 1), (V, OTHER, 1)]
)
def test_vectors_become_matrices(left: np.ndarray, right: np.ndarray, unsqueezed: int) -> None:
    same(run(taking_apart("matmul"), left, right)[0], left @ right)
    assert made(taking_apart("matmul"), left, right) == ["unsqueeze"] * unsqueezed + ["matmul", "squeeze.dims"]


def test_matrices_stay() -> None:
    assert run(taking_apart("matmul"), A, B) == []


def test_one_column_of_short_sums_is_computed_element_by_element() -> None:
    for rows, summed, alone in ((64, 64, True), (64, 65, False), (63, 64, False), (64, 1, False)):
        left, right = RNG.normal(size=(2, rows, summed)), RNG.normal(size=(summed, 1))
        calls = made(taking_apart("matmul"), left, right)
        assert calls == (["transpose.int", "mul.Tensor", "sum.dim_IntList"] if alone else [])
        if alone:
            same(run(taking_apart("matmul"), left, right)[0], left @ right)
    assert made(taking_apart("matmul"), RNG.normal(size=(64, 8)), RNG.normal(size=(8, 2))) == [], "two columns"
    whole = np.ones((64, 8), np.int64), np.ones((8, 1), np.int64)
    assert made(taking_apart("matmul"), *whole) == [], "integers are summed as they are"


def test_a_product_over_nothing_is_zero() -> None:
    left, right = BATCH[..., :0], OTHER[:, :0]
    same(run(taking_apart("matmul"), left, right)[0], np.zeros((5, 6, 2, 4)))
    half = left.astype(np.float16), right.astype(np.float16)
    assert types(taking_apart("matmul"), *half) == [((5, 6, 2, 4), "f16")]
    assert made(taking_apart("matmul"), left, right) == ["full"]


def test_shapes_of_products() -> None:
    assert product_shape((5, 1, 2, 3), (6, 3, 4)) == (5, 6, 2, 4)
    assert product_shape((3,), (6, 3, 4)) == (6, 4)
    assert product_shape((5, 2, 3), (3,)) == (5, 2)
    assert product_shape((3,), (3,)) == ()
    assert linear_shape((5, 2, 3), (4, 3)) == (5, 2, 4)
    assert linear_shape((3,), (4, 3), bias=(4,)) == (4,)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (((), (3,)), "C1: operands of rank 0 and 1, expected 1 or more"),
        (((3,), ()), "C1: operands of rank 1 and 0, expected 1 or more"),
        (((2, 3), (2, 4)), "C2: inner extents 3 and 2 differ"),
        (((2, 3), (4,)), "C2: inner extents 3 and 4 differ"),
    ],
)
def test_operands_that_do_not_fit_are_refused(shapes: tuple[tuple[int, ...], ...], message: str) -> None:
    with pytest.raises(ConstraintError, match=message):
        product_shape(*shapes)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ((3,), "C1: weight of rank 1, expected 2"),
        ((1, 4, 3), "C1: weight of rank 3, expected 2"),
        ((3, 4), "C2: input has 3 features, weight takes 4"),
    ],
)
def test_weights_that_do_not_fit_are_refused(weight: tuple[int, ...], message: str) -> None:
    with pytest.raises(ConstraintError, match=message):
        linear_shape((2, 3), weight)


@pytest.mark.parametrize("bias", [None, BIAS])
def test_layers(bias: np.ndarray | None) -> None:
    added = 0.0 if bias is None else bias
    for x in (A, BATCH, V):
        same(result("linear", x, W, bias), x @ W.T + added)
    same(run(taking_apart("linear"), V, W, bias)[0], V @ W.T + added)


def test_a_bias_is_added_afterwards() -> None:
    same(run(taking_apart("linear"), A, W, BIAS)[0], A @ W.T + BIAS)
    assert made(taking_apart("linear"), A, W, BIAS) == ["linear", "add.Tensor"]
    assert run(taking_apart("linear"), A, W, None) == []
    assert made(taking_apart("linear"), V, W, None) == ["unsqueeze", "linear", "squeeze.dim"]


def test_declarations() -> None:
    check_samples(contractions.__name__)
    facts = {(e.opfunc, e.unit, e.combine, e.fp32) for e in entries_in(contractions.__name__)}
    assert facts == {("batchmatmul", Unit.PT, "arith.addf", False)}
    assert budgets(contractions.__name__) == {"matmul": (16, True), "linear": (16, True)}
    assert defaults(contractions.__name__) == set()
