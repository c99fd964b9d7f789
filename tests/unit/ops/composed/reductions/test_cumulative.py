"""Running sums, products and extremes in both ways, against loops of numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from spyre_mlir.ops.composed.reductions import cumulative
from spyre_mlir.ops.composed.reductions.cumulative import doubled, fits_a_square, square
from tests.unit.ops.evaluation import (
    INF,
    NAN,
    a_value,
    all_same,
    budgets,
    calling,
    check_samples,
    defaults,
    made,
    result,
    results,
    run,
    same,
    types,
)

X = np.array([[1.5, -2.0, -2.0, 3.0, 3.0, -1.0], [-INF, -INF, 0.5, 700.0, 2.0, 4.0], [2.0, INF, -1.0, NAN, 5.0, NAN]])
CUBE = np.arange(24.0).reshape(2, 3, 4) % 7 - 2.5


@pytest.fixture(params=["square", "doubled"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Every test runs in both ways: there is room for a square, or there is none."""
    if request.param == "doubled":
        monkeypatch.setattr(cumulative, "SQUARE", 0)
    return request.param


def running(x: np.ndarray, dim: int, better: Callable[[Any, Any], bool]) -> list[np.ndarray]:
    """The extreme so far and its last position; the last element that is not a number stays."""
    values, places = x.copy(), np.zeros(x.shape, np.int64)
    for out, at in zip(np.moveaxis(values, dim, -1), np.moveaxis(places, dim, -1), strict=True):
        for row, where in zip(out.reshape(-1, out.shape[-1]), at.reshape(-1, out.shape[-1]), strict=True):
            for n in range(1, len(row)):
                later = row[n] != row[n] or better(row[n], row[n - 1])
                where[n] = n if later else where[n - 1]
                row[n] = row[n] if later else row[n - 1]
    return [values, places]


@pytest.mark.parametrize("dim", [0, 1, -1, -2])
@pytest.mark.parametrize(
    ("overload", "wanted"),
    [("cumsum", np.cumsum), ("cumprod", np.cumprod), ("logcumsumexp", np.logaddexp.accumulate)],
)
def test_folds_of_numbers(overload: str, wanted: Any, dim: int) -> None:
    with np.errstate(invalid="ignore"):
        same(result(overload, X, dim=dim), wanted(X, dim))
        same(result(overload, CUBE, dim=dim), wanted(CUBE, dim))


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize(("overload", "better"), [("cummax", np.greater_equal), ("cummin", np.less_equal)])
def test_extremes_and_where_they_stood_last(overload: str, better: Any, dim: int) -> None:
    whole = np.array([[3, -1, 3, 4], [0, -1, 5, -2]])
    for x in (X[:, None], CUBE, whole[None]):
        rows = [running(np.moveaxis(x, dim, -1)[None], -1, better)]
        wanted = [np.moveaxis(w[0], -1, dim) for w in rows[0]]
        all_same(results(overload, x, dim=dim), wanted)


@pytest.mark.parametrize("kind", [np.float64, np.int64, np.bool_])
@pytest.mark.parametrize("dim", [0, 1])
def test_sums_of_long_rows_are_made_in_blocks(kind: type, dim: int, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cumulative, "BLOCK", 4)
    monkeypatch.setattr(cumulative, "FEWEST", 3)
    x = np.moveaxis(np.random.default_rng(2).integers(-9, 9, (3, 20)), 1, dim)
    x = x > 0 if kind is np.bool_ else x.astype(kind)
    if kind is np.float64:
        np.moveaxis(x, dim, 1)[0, [3, 9]] = [INF, -INF]
    if way == "square":
        monkeypatch.setattr(cumulative, "SQUARE", 3 * 5 * 5)  # there is room for the sums of blocks
    with np.errstate(invalid="ignore"):
        same(result("cumsum", x, dim=dim), np.cumsum(x, dim))
    sums = made(calling("cumsum", dim=dim), x).count("sum.dim_IntList")
    assert sums == (2 if way == "square" else 0)
    monkeypatch.setattr(cumulative, "IN_BLOCKS", 59)
    assert "sum.dim_IntList" not in made(calling("cumsum", dim=dim), x)


def test_extremes_of_truth_values() -> None:
    x = np.array([False, True, False, True])
    all_same(results("cummax", x, dim=0), [np.array([False, True, True, True]), np.array([0, 1, 1, 3])])
    all_same(results("cummin", x, dim=-1), [np.array([False] * 4), np.array([0, 0, 2, 2])])


def test_truth_values_are_counted() -> None:
    x = np.array([True, False, True])
    same(result("cumsum", x, dim=0), np.array([1, 1, 2]))
    same(result("cumprod", x, dim=0), np.array([1, 0, 0]))


@pytest.mark.parametrize("overload", ["cumsum", "cumprod"])
def test_the_element_type_of_the_result(overload: str) -> None:
    for kind, given, element in (
        (np.float16, {}, "f16"),
        (np.float16, {"dtype": "f32"}, "f32"),
        (np.bool_, {}, "i64"),
        (np.bool_, {"dtype": "f32"}, "f32"),
        (np.int32, {}, "i32"),
    ):
        assert types(calling(overload, dim=0, **given), np.zeros((2, 3), kind)) == [((2, 3), element)]


@pytest.mark.parametrize("x", [np.array(-3.0), np.zeros((2, 0))], ids=["number", "nothing"])
def test_where_nothing_is_to_fold_there_is_a_copy(x: np.ndarray) -> None:
    for overload in ("cumsum", "cumprod", "logcumsumexp"):
        assert made(calling(overload, dim=0), x) == ["clone"]
        same(result(overload, x, dim=0), x)
    for overload in ("cummax", "cummin"):
        assert made(calling(overload, dim=0), x) == ["clone", "full"]
        all_same(results(overload, x, dim=0), [x, np.zeros(x.shape, np.int64)])


def test_which_way_is_taken(way: str) -> None:
    for overload in ("cumsum", "cummax", "cummin", "logcumsumexp"):
        ops = made(calling(overload, dim=-1), X)
        assert ("cat" in ops) == (way == "doubled")
        assert any(op in ops for op in ("sum.dim_IntList", "amax", "amin")) == (way == "square")
    assert "cat" in made(calling("cumprod", dim=-1), X)


def test_a_long_dimension_doubles(way: str) -> None:
    x = np.zeros(9)
    assert made(lambda b, v: doubled(b, (v,), 0, lambda x, y: (x[0] + y[0],)), x).count("add.Tensor") == 4
    (got,) = run(lambda b, v: doubled(b, (v,), 0, lambda x, y: (x[0] * 10.0 + y[0],)), np.array([1.0, 2.0, 3.0]))
    same(got, [1.0, 12.0, 33.0])  # 1, 12, 23 after the first step; then 1 * 10 + 23


def test_a_square_is_a_value_against_itself() -> None:
    rows, columns, before = run(lambda b, v: square(b, v, 1), CUBE)
    same(rows, CUBE[:, :, None])
    same(columns, CUBE[:, None])
    same(before, np.tril(np.ones((3, 3), np.bool_)).reshape(3, 3, 1))


def test_room_for_a_square(way: str) -> None:
    if way == "square":
        assert fits_a_square(a_value(np.zeros((4, 512))), 1)
        assert not fits_a_square(a_value(np.zeros((4, 513))), 1)
        assert fits_a_square(a_value(np.zeros((4, 513))), 0)


def test_declarations() -> None:
    check_samples(cumulative.__name__)
    wanted = dict.fromkeys(("cumsum", "cumprod", "logcumsumexp"), (16, True))
    assert budgets(cumulative.__name__) == wanted | dict.fromkeys(("cummax", "cummin"), (1, False))
    assert defaults(cumulative.__name__) == {("dtype", None)}
