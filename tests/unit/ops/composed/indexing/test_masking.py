"""Choices by masks and triangles, against numpy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.unit.ops.cases import INF, NAN, agree, budgets, check_samples, result

MODULE = "spyre_mlir.ops.composed.indexing.masking"

X = np.arange(1.0, 25.0).reshape(2, 3, 4)


def test_a_number_stands_where_the_mask_holds() -> None:
    mask = np.array([[True], [False], [True]])
    agree(result("masked_fill.Scalar", X, mask, -7.5), np.where(mask, -7.5, X))
    agree(result("masked_fill.Tensor", X, mask, np.array(-7.5)), np.where(mask, -7.5, X))
    agree(result("masked_fill.Scalar", X, mask, -INF), np.where(mask, -INF, X))


@pytest.mark.parametrize("diagonal", [0, 1, 2, 5, -1, -2, -4])
@pytest.mark.parametrize(("overload", "wanted"), [("tril", np.tril), ("triu", np.triu)])
@pytest.mark.parametrize("x", [X, X[0].T, X.astype(np.int64), X > 0])
def test_triangles(overload: str, wanted: Any, x: Any, diagonal: int) -> None:
    agree(result(overload, x, diagonal=diagonal), wanted(x, diagonal))


def test_the_main_diagonal_is_meant_unless_told() -> None:
    agree(result("tril", X), np.tril(X))
    agree(result("triu", X), np.triu(X))


def test_what_lies_outside_is_0_whatever_it_was() -> None:
    x = np.array([[1.0, INF], [NAN, 2.0]])
    agree(result("tril", x), [[1.0, 0.0], [NAN, 2.0]])
    agree(result("triu", x), [[1.0, INF], [0.0, 2.0]])


def test_errors_that_are_allowed() -> None:
    wanted = dict.fromkeys(("masked_fill", "tril", "triu"), (1, True))
    assert budgets(MODULE) == wanted


def test_samples_fit() -> None:
    check_samples(MODULE)
