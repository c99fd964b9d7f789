"""Copies, conversions and concatenation, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from spyre_mlir.errors import ConstraintError
from spyre_mlir.ops.hardware_functions import COPY
from spyre_mlir.ops.native import movement
from spyre_mlir.ops.native.movement import cat_shape
from tests.unit.ops.evaluation import NAN, calling, check_samples, defaults, entries_in, result, same, types

X = np.array([[1.5, -2.75, 0.0], [-0.25, 3.0, 200.5]])


@pytest.mark.parametrize("overload", ["clone", "contiguous"])
def test_copies(overload: str) -> None:
    same(result(overload, X, memory_format="contiguous_format"), X)


@pytest.mark.parametrize(
    ("dtype", "wanted"),
    [
        (None, X),
        ("f16", X),
        ("i64", [[1, -2, 0], [0, 3, 200]]),
        ("i32", [[1, -2, 0], [0, 3, 200]]),
        ("ui8", [[1, 254, 0], [0, 3, 200]]),
        ("i1", [[True, True, False], [True, True, True]]),
    ],
)
def test_conversions_round_towards_zero(dtype: str | None, wanted: object) -> None:
    same(result("_to_copy", X, dtype=dtype, non_blocking=True), wanted)
    assert types(calling("_to_copy", dtype=dtype), X) == [((2, 3), dtype or "f32")]


def test_what_is_not_a_number_is_true() -> None:
    same(result("_to_copy", np.array([NAN, -0.0]), dtype="i1"), [True, False])


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_concatenation(dim: int) -> None:
    other = -X[:, :1] if dim else -X[:1]
    wanted = np.concatenate([X, other, X], dim)
    same(result("cat", [X, other, X], dim=dim), wanted)
    assert cat_shape([X.shape, other.shape, X.shape], dim=dim) == wanted.shape


def test_the_first_dimension_is_joined_unless_said() -> None:
    same(result("cat", [X, X]), np.concatenate([X, X]))
    assert cat_shape([(2, 3), (4, 3)]) == (6, 3)


def test_vectors_without_elements_count_as_nothing() -> None:
    empty = np.zeros(0)
    same(result("cat", [empty, X, empty], dim=1), X)
    same(result("cat", [empty, empty]), empty)
    assert cat_shape([(0,), (2, 3), (2, 1)], dim=1) == (2, 4)
    assert cat_shape([(0,), (0,)]) == (0,)


@pytest.mark.parametrize("other", [(3, 3), (2, 3, 1), (3,)])
def test_shapes_that_differ_elsewhere_are_refused(other: tuple[int, ...]) -> None:
    with pytest.raises(ConstraintError, match=r"C1: shapes \(2, 3\) and .* differ outside dimension 1"):
        cat_shape([(2, 3), other], dim=-1)


def test_declarations() -> None:
    check_samples(movement.__name__)
    facts = {e.name: (e.opfunc, e.fp32) for e in entries_in(movement.__name__)}
    assert facts == {"clone": (COPY, True), "_to_copy": (None, False), "cat": (COPY, True)}
    assert defaults(movement.__name__) == {
        ("memory_format", None),
        ("dtype", None),
        ("non_blocking", False),
        ("dim", 0),
    }
