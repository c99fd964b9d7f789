"""Elements picked by index tensors, against numpy's indexing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.ops.composed.indexing.gathering import Indexed
from tests.unit.ops.cases import NAN, agree, budgets, check_samples, result, result_of_body, results_of_body

MODULE = "spyre_mlir.ops.composed.indexing.gathering"

X = np.arange(24.0).reshape(2, 3, 4) * np.array([1.0, -1.0, 0.5, -0.25])
KINDS = [X, X.astype(np.int64), X % 2 > 0.5]


@pytest.mark.parametrize("dim", [0, 1, 2, -1, -2, -3])
@pytest.mark.parametrize("x", KINDS)
def test_gather(dim: int, x: Any) -> None:
    shape = [5 if d == dim % 3 else n - 1 for d, n in enumerate(x.shape)]
    index = np.random.default_rng(3).integers(0, x.shape[dim], shape)
    part = tuple(slice(None if d == dim % 3 else n) for d, n in enumerate(shape))
    agree(result("gather", x, index, dim=dim), np.take_along_axis(x[part], index, dim))


def test_gather_of_numbers_without_dimensions() -> None:
    agree(result("gather", np.array(3.5), np.array(0), dim=0), 3.5)
    agree(result("gather", np.array([1.0, 2.5]), np.array(1), dim=0), 2.5)
    agree(result("gather", np.array(3.5), np.array([0, 0]), dim=-1), [3.5, 3.5])


def test_an_index_outside_gives_nan_or_0() -> None:
    agree(result("gather", np.array([1.0, 2.5]), np.array([1, 2, -1]), dim=0), [2.5, NAN, NAN])
    agree(result("gather", np.array([1, 2]), np.array([1, 2, -1]), dim=0), [2, 0, 0])


@pytest.mark.parametrize(("dim", "shape"), [(1, (2, 2, 4)), (-1, (1, 3, 2)), (0, (3, 1, 1)), (2, (2, 1, 0))])
def test_take_along_dim_broadcasts_the_others(dim: int, shape: tuple[int, ...]) -> None:
    index = np.random.default_rng(1).integers(-X.shape[dim], X.shape[dim], shape)
    agree(result("take_along_dim", X, index, dim=dim), np.take_along_axis(X, index, dim))
    narrow = X[:, :1]
    if dim != 1:
        wide = index + np.zeros((1, 3, 1), np.int64)
        agree(result("take_along_dim", narrow, wide, dim=dim), np.take_along_axis(narrow, wide, dim))


def test_of_nothing_nothing_is_taken() -> None:
    assert result("take_along_dim", np.zeros((0, 3)), np.zeros((1, 2), np.int64), dim=1).shape == (0, 2)


@pytest.mark.parametrize("index", [np.array([[0, 23], [-1, 5]]), np.array([3]), np.array(-24)])
def test_take_counts_through_all_elements(index: Any) -> None:
    agree(result("take", X, index), X.take(index))
    agree(result("take_along_dim", X, index), X.take(index).ravel())


ROWS, PLACES = np.array([1, 0, -1]), np.array([[2], [-4]])


@pytest.mark.parametrize("x", KINDS)
@pytest.mark.parametrize(
    "indices",
    [
        [ROWS],
        [None, ROWS],
        [None, None, PLACES],
        [ROWS, PLACES % 3],
        [None, ROWS, PLACES],
        [ROWS, None, PLACES],
        [ROWS, None, np.array([3, 0, 1])],
        [ROWS, ROWS, ROWS],
        [np.array(1), ROWS],
        [None, np.array([], np.int64)],
    ],
)
def test_indexing(x: Any, indices: list[Any]) -> None:
    wanted = x[tuple(slice(None) if i is None else i for i in indices)]
    agree(result("index.Tensor", x, indices), wanted)


@pytest.mark.parametrize("index", [np.array([True, False]), "ui8"])
def test_a_mask_is_refused(index: Any) -> None:
    def body(b: Any, x: Any, i: Any) -> Any:
        return b.call("index.Tensor", x, [b.cast(i, "ui8") if isinstance(index, str) else i])

    with pytest.raises(UnsupportedError, match=r"indexing with a mask\n  try: use torch\.where"):
        result_of_body(body, X, np.array([1, 0]) if isinstance(index, str) else index)


@pytest.mark.parametrize(
    "indices", [[ROWS], [None, ROWS], [ROWS, PLACES % 3], [None, ROWS, PLACES], [ROWS, None, PLACES]]
)
def test_what_is_written_is_laid_out_like_what_is_read(indices: list[Any]) -> None:
    read = X[tuple(slice(None) if i is None else i for i in indices)]
    kept = [d for d in range(3) if d >= len(indices) or indices[d] is None]
    used = [d for d in range(3) if d not in kept]
    common = np.broadcast(*(i for i in indices if i is not None))

    def written(b: Any, x: Any, values: Any, *given: Any) -> Any:
        spread = iter(given)
        taken = Indexed.of(b, x, [None if i is None else next(spread) for i in indices])
        return taken.flattened(x), taken.unflattened(taken.flattened(x)), taken.arranged(values), taken.hits

    given = [i for i in indices if i is not None]
    table, back, values, hits = results_of_body(written, X, read, *given)
    places = int(np.prod([X.shape[d] for d in used]))
    agree(table, X.transpose(*kept, *used).reshape(-1, places))
    agree(back, X)
    # What is read of a place is what the table holds there: [kept elements, indices].
    agree(values, np.array([[row[hit].item() for hit in hits] for row in table]))
    assert values.shape[1] == common.size


def test_values_are_spread_over_all_places_written() -> None:
    def body(b: Any, x: Any, values: Any, i: Any) -> Any:
        return Indexed.of(b, x, [None, i]).arranged(values)

    agree(result_of_body(body, X[0], np.array([7.0, 8.0]), np.array([3, 1])), np.array([[7.0, 8.0]] * 3))


def test_errors_that_are_allowed() -> None:
    wanted = dict.fromkeys(("gather", "take_along_dim", "take", "index"), (1, False))
    assert budgets(MODULE) == wanted


def test_samples_fit() -> None:
    check_samples(MODULE)
