"""Orders of elements, in blocks and picked one by one, against Python's stable sort."""

from __future__ import annotations

import numpy as np
import pytest

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.ops.composed.reductions import sorting
from tests.unit.ops.evaluation import (
    INF,
    NAN,
    all_same,
    budgets,
    calling,
    check_samples,
    defaults,
    made,
    result,
    results,
    same,
    types,
)

X = np.array([[3.0, NAN, -1.0, 3.0, -INF], [INF, 2.0, NAN, NAN, INF], [0.0, 5.0, 0.0, -2.0, 5.0]])
WHOLE = np.array([[4, -7, 4, 0], [9, 9, -9, 9]])
TRUTH = np.array([[True, False, True], [False, False, True]])
CUBE = np.arange(30.0).reshape(2, 3, 5) * 7 % 11
TENSORS = [X, WHOLE, TRUTH, CUBE]


def ordered(x: np.ndarray, dim: int, descending: bool = False) -> list[np.ndarray]:
    """The elements and where they stood: NaN is the largest, and equal elements keep their order."""

    def places(row: np.ndarray) -> np.ndarray:
        sign = -1 if descending else 1
        keys = [(sign * (v != v), 0.0 if v != v else sign * float(v)) for v in row]
        return np.array(sorted(range(len(row)), key=keys.__getitem__), np.int64)

    where = np.apply_along_axis(places, dim, x)
    return [np.take_along_axis(x, where, dim), where]


@pytest.mark.parametrize("x", TENSORS)
@pytest.mark.parametrize("descending", [False, True])
def test_sorting(x: np.ndarray, descending: bool) -> None:
    for dim in (0, -1, 1):
        values, places = ordered(x, dim, descending)
        all_same(results("sort", x, dim=dim, descending=descending), [values, places])
        all_same(results("sort.stable", x, stable=True, dim=dim, descending=descending), [values, places])
        for overload in ("argsort", "argsort.stable"):
            same(result(overload, x, dim=dim, descending=descending, stable=False), places)


def test_the_last_dimension_is_sorted_upwards_unless_said() -> None:
    all_same(results("sort", X), ordered(X, -1))
    same(result("argsort", X), ordered(X, -1)[1])
    same(result("msort", CUBE), ordered(CUBE, 0)[0])
    all_same(results("topk", X, k=2), [r[:, :2] for r in ordered(X, -1, descending=True)])
    all_same(results("kthvalue", X, k=2), [r[:, 1] for r in ordered(X, -1)])


@pytest.mark.parametrize("x", TENSORS)
@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("k", [0, 1, 2])
def test_the_first_in_order(x: np.ndarray, largest: bool, k: int) -> None:
    for dim in (0, -1):
        wanted = [np.take(r, range(k), dim) for r in ordered(x, dim, largest)]
        all_same(results("topk", x, k=k, dim=dim, largest=largest, sorted=False), wanted)


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dim", [0, -1, 1])
def test_elements_of_one_rank(keepdim: bool, dim: int) -> None:
    def one(x: np.ndarray, rank: int) -> list[np.ndarray]:
        return [np.take(r, [rank] if keepdim else rank, dim) for r in ordered(x, dim)]

    for x in TENSORS:
        all_same(results("kthvalue", x, k=2, dim=dim, keepdim=keepdim), one(x, 1))
    for x in (CUBE, WHOLE):
        all_same(results("median.dim", x, dim=dim, keepdim=keepdim), one(x, (x.shape[dim] - 1) // 2))


def test_a_median_is_not_a_number_if_an_element_is_none() -> None:
    all_same(results("median.dim", X, dim=-1), [[NAN, NAN, 0.0], [1, 2, 2]])
    all_same(results("median.dim", X, dim=1, keepdim=True), [[[NAN], [NAN], [0.0]], [[1], [2], [2]]])
    same(result("median", X), NAN)


def test_the_median_of_all_elements() -> None:
    same(result("median", X[2]), 0.0)
    same(result("median", CUBE), np.sort(CUBE, None)[14])
    same(result("median", WHOLE), 4)


@pytest.mark.parametrize("keepdim", [False, True])
def test_the_most_frequent_element(keepdim: bool) -> None:
    x = np.array([[5.0, 1.0, 5.0, 1.0, 2.0], [7.0, -3.0, 9.0, -3.0, -3.0], [4.0, INF, INF, 8.0, -INF]])
    values, places = np.array([[1.0], [-3.0], [INF]]), np.array([[3], [4], [2]])
    wanted = [values, places] if keepdim else [values[:, 0], places[:, 0]]
    all_same(results("mode", x, keepdim=keepdim), wanted)
    all_same(results("mode", x.T, dim=0, keepdim=keepdim), [w.T for w in wanted])
    truth = np.array([True, False, True])
    all_same(results("mode", truth, dim=-1), [np.array(True), 2])
    all_same(results("mode", np.array([3, -4, 3, -4]), dim=0), [-4, 3])


def test_one_number() -> None:
    number = np.array(-3.0)
    for overload, given in (("sort", {}), ("topk", {"k": 1}), ("kthvalue", {"k": 1}), ("mode", {})):
        all_same(results(overload, number, **given), [number, 0])
    all_same(results("median.dim", number, dim=0), [number, 0])
    same(result("argsort", number), 0)
    same(result("msort", number), number)
    same(result("median", number), number)


def test_nothing_in_order() -> None:
    empty = np.zeros((2, 0))
    all_same(results("sort", empty, dim=0), [empty, np.zeros((2, 0), np.int64)])


@pytest.mark.parametrize("overload", ["sort", "kthvalue", "topk", "median.dim", "mode"])
def test_the_element_type_of_the_results(overload: str) -> None:
    given = {"dim": 0} | ({"k": 1} if overload in ("kthvalue", "topk") else {})
    for kind, name in ((np.float16, "f16"), (np.bool_, "i1"), (np.int32, "i32")):
        found = types(calling(overload, **given), np.zeros((3, 2), kind))
        assert [element for _, element in found] == [name, "i64"]


@pytest.mark.parametrize("room", [1, 20, 60, 74])
def test_blocks_of_rows_are_put_together(monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    monkeypatch.setattr(sorting, "SQUARE", room)
    for x in TENSORS:
        for dim in (0, 1):
            all_same(results("sort", x, dim=dim, descending=True), ordered(x, dim, descending=True))


@pytest.mark.parametrize(
    ("shape", "dim", "blocks"),
    [((4, 1024), 1, 1), ((5, 1024), 1, 2), ((9, 1024), 1, 3), ((1024, 2, 5), 0, 3), ((2048,), 0, 1), ((2896,), 0, 1)],
)
def test_a_block_has_as_many_rows_as_fit(shape: tuple[int, ...], dim: int, blocks: int) -> None:
    """A block has 2^22 comparisons: four rows of 1,024 elements, or two of five pairs of them."""
    x = np.broadcast_to(0.0, shape)
    assert made(calling("sort", dim=dim), x).count("lt.Tensor") == 2 * blocks


LONG = np.broadcast_to(0.0, (1 << 13,))
LONGER = np.broadcast_to(0.0, ((1 << 13) + 1,))


def test_too_much_to_compare_is_refused() -> None:
    assert types(calling("sort"), LONG)[0][0] == LONG.shape
    with pytest.raises(
        UnsupportedError, match=r"an ordering of 8193 elements in a tensor of shape \(8193,\)"
    ) as caught:
        types(calling("sort"), LONGER)
    assert "takes 67125249 elements, 67108864 are the most" in str(caught.value)


def test_a_few_of_very_many_are_picked() -> None:
    many = np.broadcast_to(0.0, (33, *LONGER.shape))
    assert types(calling("topk", k=50), many)[0][0] == (33, 50)
    for overload, k in (("topk", 51), ("kthvalue", 2)):
        with pytest.raises(UnsupportedError, match="an ordering of 8193 elements"):
            types(calling(overload, k=k), many)
    with pytest.raises(UnsupportedError, match="an ordering of 8193 elements") as caught:
        types(calling("topk", k=2), np.broadcast_to(np.int64(0), many.shape))
    assert "takes 69214464 elements" in str(caught.value)  # with 256 at a time


def test_how_the_first_of_long_rows_are_found() -> None:
    def comparisons(k: int, x: np.ndarray) -> tuple[int, int]:
        """How many blocks are ordered by rank, and how many elements are picked."""
        ops = made(calling("topk", k=k), x)
        return ops.count("lt.Tensor"), ops.count("amin")

    assert comparisons(4, LONG) == (0, 4)
    assert comparisons(64, LONGER)[0] > 0
    assert types(calling("topk", k=64), np.broadcast_to(np.int64(0), LONGER.shape))[0][0] == (64,)
    with pytest.raises(UnsupportedError, match="an ordering of 8193 elements"):
        types(calling("topk", k=65), LONGER)


def test_what_is_picked_is_first_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorting, "MOST", 0)
    for x in (X, CUBE):
        for dim in (0, 1):
            wanted = [np.take(r, range(2), dim) for r in ordered(x, dim, descending=True)]
            all_same(results("topk", x, k=2, dim=dim), wanted)
            assert "sum.dim_IntList" not in made(calling("topk", k=2, dim=dim), x)
    falling = [np.take(r, range(3), 1) for r in ordered(CUBE, 1)]
    all_same(results("topk", CUBE, k=3, dim=1, largest=False), falling)
    all_same(results("topk", TRUTH, k=2), [r[:, :2] for r in ordered(TRUTH, 1, descending=True)])


def test_infinities_are_picked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorting, "MOST", 0)
    x = np.array([-INF, 2.0, -INF, INF])
    all_same(results("topk", x, k=4), [[INF, 2.0, -INF, -INF], [3, 1, 0, 2]])
    all_same(results("topk", -x, k=4, largest=False), [[-INF, -2.0, INF, INF], [3, 1, 0, 2]])


def test_the_most_frequent_of_too_many_is_refused() -> None:
    assert types(calling("mode"), np.broadcast_to(0.0, (2048,)))[0][0] == ()
    with pytest.raises(UnsupportedError, match="an ordering of 2049 elements"):
        types(calling("mode"), np.broadcast_to(0.0, (2049,)))


def test_declarations() -> None:
    check_samples(sorting.__name__)
    names = ("sort", "argsort", "msort", "topk", "kthvalue", "median_along", "median", "mode")
    assert budgets(sorting.__name__) == dict.fromkeys(names, (1, False))
    assert defaults(sorting.__name__) == {
        ("dim", -1),
        ("descending", False),
        ("stable", None),
        ("stable", False),
        ("largest", True),
        ("sorted", True),
        ("keepdim", False),
    }
