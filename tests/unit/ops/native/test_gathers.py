"""Rows picked by index tensors, against numpy.take."""

from __future__ import annotations

import numpy as np
import pytest

from spyre_mlir.errors import ConstraintError
from spyre_mlir.ops.hardware_functions import COPY
from spyre_mlir.ops.native import gathers
from spyre_mlir.ops.native.gathers import TAKE_PAGES, embedding_shape, index_select_shape, take_pages_shape
from tests.unit.ops.evaluation import check_samples, defaults, entry_of, result, results, same

X = np.arange(24.0).reshape(2, 3, 4) - 5.0
ROWS = X[0]


@pytest.mark.parametrize("indices", [np.array([2, 0, 2]), np.array([[1, 2], [0, 0]]), np.array(1)])
def test_rows_of_a_table(indices: np.ndarray) -> None:
    same(result("embedding", ROWS, indices), ROWS[indices])
    same(result("embedding", ROWS, indices, padding_idx=1, scale_grad_by_freq=True, sparse=True), ROWS[indices])
    assert embedding_shape(ROWS.shape, indices.shape) == (*indices.shape, 4)


@pytest.mark.parametrize("index", [3, -1])
def test_an_index_outside_the_table_is_refused(index: int) -> None:
    with pytest.raises(ConstraintError, match="C2: an index lies outside the 3 rows of weight"):
        results("embedding", ROWS, np.array([0, index, 1]))


@pytest.mark.parametrize("shape", [(3,), (2, 3, 4)])
def test_a_table_that_is_no_matrix_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ConstraintError, match=f"C1: weight of rank {len(shape)}, expected 2"):
        embedding_shape(shape, (2,))


@pytest.mark.parametrize("dim", [0, 1, 2, -1, -3])
@pytest.mark.parametrize("index", [[1, 0, 1], [-1], [0, -2, -1, 1]])
def test_entries_of_a_dimension(dim: int, index: list[int]) -> None:
    wanted = np.take(X, index, dim)
    same(result("index_select", X, np.array(index), dim=dim), wanted)
    assert index_select_shape(X.shape, (len(index),), dim=dim) == wanted.shape


def test_one_entry_and_one_number() -> None:
    same(result("index_select", X, np.array(1), dim=-2), X[:, 1:2])
    assert index_select_shape(X.shape, (), dim=-2) == (2, 1, 4)
    same(result("index_select", np.array(5.0), np.array([0]), dim=0), 5.0)
    assert index_select_shape((), (1,), dim=-1) == ()


def test_an_index_that_is_no_vector_is_refused() -> None:
    with pytest.raises(ConstraintError, match="C1: index of rank 2, expected 0 or 1"):
        index_select_shape((2, 3), (1, 1), dim=0)


@pytest.mark.parametrize("indices", [np.array([[2, 0], [-1, 3], [1, 1]]), np.array([3, -4])])
def test_places_of_pages_lie_behind_each_other_by_head(indices: np.ndarray) -> None:
    pages = np.arange(4 * 3 * 2 * 5.0).reshape(4, 3, 2, 5)
    wanted = [
        [np.concatenate([pages[number, :, head] for number in row]) for head in range(2)]
        for row in indices.reshape(-1, 2)
    ]
    same(result(TAKE_PAGES, pages, indices), np.array(wanted).reshape(*indices.shape[:-1], 2, 6, 5))
    assert take_pages_shape(pages.shape, indices.shape) == (*indices.shape[:-1], 2, 6, 5)


def test_pages_without_heads_and_single_pages_are_refused() -> None:
    with pytest.raises(ConstraintError, match="C1: pages of rank 3, expected 4"):
        take_pages_shape((4, 3, 5), (2, 2))
    with pytest.raises(ConstraintError, match="C2: indices of rank 0, expected a row of them"):
        take_pages_shape((4, 3, 2, 5), ())


def test_declarations() -> None:
    check_samples(gathers.__name__)
    assert (entry_of("embedding").opfunc, entry_of("embedding").fp32) == (COPY, True)
    assert entry_of("index_select").opfunc is None
    wanted = {("padding_idx", -1), ("scale_grad_by_freq", False), ("sparse", False)}
    assert defaults(gathers.__name__) == wanted
