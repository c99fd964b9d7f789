"""Elements chosen, folded and written by position, against loops of numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.ops.helpers import index_matching
from spyre_mlir.ops.helpers.index_matching import (
    all_named,
    chosen,
    covered,
    folded,
    from_end,
    is_inside,
    multiplied,
    named,
    written,
)
from tests.unit.ops.evaluation import INF, NAN, made, run, same, types

INDEX = np.array([2, 0, 2])
HITS = np.array([[False, False, True, False], [True, False, False, False], [False, False, True, False]])
NONE = np.array([[False, True, False], [False, False, False]])
TABLE = np.array([[1.0, -2.0, 3.0, INF], [5.0, NAN, -7.0, 8.0]])


class Bounded:
    """What knows bounds of integers."""

    def __init__(self, low: int, high: int) -> None:
        self.known = low, high

    def bounds(self, value: object) -> tuple[int, int]:
        return self.known


def test_negative_places_count_from_the_end() -> None:
    same(run(lambda b, i: from_end(i, 4), np.array([0, -1, 3, -4]))[0], [0, 3, 3, 0])


def test_every_index_is_compared_with_every_place() -> None:
    same(run(lambda b, i: named(b, i, 4), INDEX)[0], HITS)
    same(run(lambda b, i: named(b, i, 2), np.array([[1], [5]]))[0], [[[False, True]], [[False, False]]])


def test_too_many_comparisons_are_refused() -> None:
    index = np.broadcast_to(np.int64(0), (1 << 16, 1 << 4))
    assert types(lambda b, i: named(b, i, 64), index) == [((1 << 16, 1 << 4, 64), "i1")]
    with pytest.raises(UnsupportedError, match="68157440 comparisons of indices") as caught:
        types(lambda b, i: named(b, i, 65), index)
    assert "use fewer indices at a time" in str(caught.value)


def test_several_indices_name_one_place_of_the_product() -> None:
    rows, columns, planes = np.array([1, 0]), np.array([2, 0]), np.array([1, 1])
    (got,) = run(lambda b, *i: all_named(b, list(i), [2, 3, 2]), rows, columns, planes)
    assert got.shape == (2, 12)
    assert np.argwhere(got).tolist() == [[0, 11], [1, 1]]
    assert made(lambda b, i: all_named(b, [i], [4]), INDEX) == made(lambda b, i: named(b, i, 4), INDEX)


def test_chosen_elements() -> None:
    same(run(chosen, HITS, TABLE)[0], TABLE[:, INDEX])
    same(run(chosen, HITS, np.array([1, -2, 3, 4]))[0], [3, 1, 3])
    same(run(chosen, HITS, np.array([True, False, False, True]))[0], [False, True, False])


def test_an_index_outside_chooses_what_is_no_number() -> None:
    table = np.array([4.0, -5.0, 6.0])
    same(run(chosen, NONE, table)[0], [-5.0, NAN])
    same(run(chosen, NONE, np.array([4, -5, 6]))[0], [-5, 0])
    same(run(lambda b, h, t: chosen(b, h, t, inside=True), NONE, table)[0], [-5.0, 0.0])
    truth = np.array([False, True, False])
    same(run(lambda b, h, t: chosen(b, h, t, inside=True), NONE, truth)[0], [True, False])


FOLDED = np.array([[2.0, 3.0, -5.0], [1.0, INF, 4.0]])
SUMS = [[3.0, 0.0, -3.0, 0.0], [INF, 0.0, 5.0, 0.0]]


def test_values_are_summed_where_their_indices_point() -> None:
    same(run(folded, HITS, FOLDED)[0], SUMS)
    same(run(lambda b, h, v: folded(b, h, v, transposed=True), HITS, TABLE)[0], TABLE[:, INDEX])
    same(run(folded, np.stack([HITS[:2], HITS[1:]]), np.array([[1, 2], [3, 4]]))[0], [[2, 0, 1, 0], [3, 0, 4, 0]])


def test_many_selections_become_a_product(monkeypatch: pytest.MonkeyPatch) -> None:
    square, several = np.zeros((256, 256), np.bool_), np.zeros((2, 256))
    assert "matmul" in made(folded, square, several)
    assert "matmul" not in made(folded, square, several[0])
    assert "matmul" not in made(folded, square, several.astype(np.int64))
    assert "matmul" not in made(folded, np.zeros((2, 256, 256), np.bool_), several)
    monkeypatch.setattr(index_matching, "MOST_SELECTED", 23)
    assert "matmul" in made(folded, HITS, FOLDED)
    same(run(folded, HITS, FOLDED)[0], SUMS)
    (got,) = run(lambda b, h, v: folded(b, h, v, transposed=True), HITS, TABLE)
    same(got, TABLE[:, INDEX])


def test_columns_of_a_batch_become_a_product() -> None:
    hits = np.stack([HITS, HITS[::-1]])[:, None]
    several = np.stack([TABLE, 2 * TABLE])
    wide = np.zeros((2, 1, 256, 256), np.bool_), np.zeros((2, 3, 256))
    assert "matmul" in made(folded, *wide)
    assert "matmul" not in made(folded, wide[0], wide[1][:, :1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index_matching, "MOST_SELECTED", 2 * 2 * 12 - 1)
        assert "matmul" in made(folded, hits, several[..., :3])
        (got,) = run(lambda b, h, v: folded(b, h, v, transposed=True), hits, several)
        same(got, np.stack([TABLE[:, INDEX], 2 * TABLE[:, INDEX[::-1]]]))
        same(run(folded, hits[:1], FOLDED[None])[0], [SUMS])


def test_what_is_known_of_an_index_says_whether_it_is_inside() -> None:
    def inside(b: Any, index: Any) -> Any:
        assert not is_inside(b, index, 9)  # nothing is known of a tensor
        return index

    run(inside, INDEX)
    assert [is_inside(Bounded(*span), None, 4) for span in ((0, 3), (0, 4), (-1, 3))] == [True, False, False]  # type: ignore[arg-type]


def test_what_is_not_finite_stays_where_it_is_in_a_product(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_matching, "MOST_SELECTED", 0)
    hits = np.eye(5, dtype=np.bool_)[[0, 1, 2, 3, 4, 0, 1]][:, :5]
    values = np.array([INF, -INF, NAN, 2.0, -3.0, -INF, 7.0])
    same(run(folded, hits, values)[0], [NAN, -INF, NAN, 2.0, -3.0])
    same(run(folded, hits, np.array([INF, 1.0, 2.0, 3.0, 4.0, 5.0, INF]))[0], [INF, INF, 2.0, 3.0, 4.0])


def test_places_that_an_index_names() -> None:
    same(run(covered, HITS)[0], [True, False, True, False])


def test_later_writes_win() -> None:
    own, values = np.array([[10.0, 11.0, 12.0, 13.0]]), np.array([[1.0, 2.0, 3.0]])
    same(run(written, own, HITS, values)[0], [[2.0, 11.0, 3.0, 13.0]])
    same(run(written, own, HITS[:1], values[:, :1])[0], [[10.0, 11.0, 1.0, 13.0]])
    same(run(written, np.array([10, 11, 12, 13]), HITS, np.array([4, 5, 6]))[0], [5, 11, 6, 13])
    truth = np.array([True, False, False, True])
    same(run(written, truth, HITS, np.array([False, False, True]))[0], [False, False, True, True])
    assert made(written, own, HITS[:0], values[:, :0]) == []
    assert "sum.dim_IntList" not in made(written, own, HITS[:1], values[:, :1])


@pytest.mark.parametrize("extent", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("dim", [0, 1])
def test_products_over_a_dimension(extent: int, dim: int) -> None:
    x = np.moveaxis(np.arange(1.0, 2 * extent + 1).reshape(2, extent) / 3 - 1.1, 1, dim)
    same(run(lambda b, x: multiplied(b, x, dim), x)[0], x.prod(dim))
