"""Elements written to places, against loops over the indices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from spyre_mlir.errors import UnsupportedError
from tests.unit.ops.cases import INF, NAN, agree, budgets, check_samples, result

MODULE = "spyre_mlir.ops.composed.indexing.scattering"

X = np.arange(24.0).reshape(2, 3, 4) - 6.5
RNG = np.random.default_rng(5)
Combine = Callable[[Any], Any]
COMBINE: dict[str, Combine] = {
    "sum": np.sum,
    "prod": np.prod,
    "mean": np.mean,
    "amax": np.max,
    "amin": np.min,
    "last": lambda values: values[-1],
}


def scattered(x: Any, index: Any, source: Any, dim: int, how: str, *, include_self: bool = True) -> Any:
    """By place: all elements that go there, in order, as one."""
    arriving: dict[tuple[int, ...], list[Any]] = {}
    for at in np.ndindex(index.shape):
        place = list(at)
        place[dim] = int(index[at])
        arriving.setdefault(tuple(place), []).append(source[at])
    out = x.copy()
    for place, values in arriving.items():
        combined = COMBINE[how]([x[place], *values] if include_self else values)
        out[place] = np.floor(combined) if x.dtype.kind == "i" else combined
    return out


def drawn(dim: int, kind: Any = np.float64) -> tuple[Any, Any]:
    """Indices that reach a part of X, some twice, and a source that is larger than they are."""
    shape = tuple(5 if d == dim % 3 else max(1, n - 1) for d, n in enumerate(X.shape))
    index = RNG.integers(0, X.shape[dim], shape)
    return index, RNG.integers(-9, 10, [n + 1 for n in shape]).astype(kind)


DIMS = [0, 1, 2, -1, -3]


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("x", [X, X.astype(np.int64), X > 0])
def test_of_several_elements_the_last_stays(x: Any, dim: int) -> None:
    index, source = drawn(dim, x.dtype)
    agree(result("scatter.src", x, index, source, dim=dim), scattered(x, index, source, dim, "last"))


@pytest.mark.parametrize("dim", DIMS)
def test_one_number_is_written(dim: int) -> None:
    index, _ = drawn(dim)
    wanted = scattered(X, index, np.full(index.shape, 7.5), dim, "last")
    agree(result("scatter.value", X, index, 7.5, dim=dim), wanted)


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("how", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("x", [X, X.astype(np.int64)])
def test_all_elements_count(x: Any, dim: int, how: str, include_self: bool) -> None:
    index, source = drawn(dim, x.dtype)
    got = result("scatter_reduce.two", x, index, source, dim=dim, reduce=how, include_self=include_self)
    agree(got, scattered(x, index, source, dim, how, include_self=include_self))


def test_what_was_there_counts_unless_told() -> None:
    got = result("scatter_reduce.two", np.array([1.0, 2.0]), np.array([1]), np.array([5.0]), dim=0, reduce="sum")
    agree(got, [1.0, 7.0])


@pytest.mark.parametrize(("how", "wanted"), [("sum", [True, True, False]), ("prod", [False, True, False])])
def test_truth_values_are_combined(how: str, wanted: list[bool]) -> None:
    x, index, source = np.array([False, True, False]), np.array([0, 1, 2]), np.array([True, True, False])
    agree(result("scatter_reduce.two", x, index, source, dim=0, reduce=how), wanted)


@pytest.mark.parametrize("how", ["amax", "amin"])
def test_nan_stays_at_its_own_place(how: str) -> None:
    x, index = np.array([1.0, 2.0, 3.0]), np.array([0, 0, 1])
    for include_self in (True, False):
        got = result(
            "scatter_reduce.two", x, index, np.array([NAN, 5.0, 2.0]), dim=0, reduce=how, include_self=include_self
        )
        agree(got, [NAN, 2.0, 3.0])


@pytest.mark.parametrize(("how", "infinity"), [("amax", -INF), ("amin", INF)])
def test_an_infinity_that_is_alone_wins(how: str, infinity: float) -> None:
    x, index, source = np.zeros(2), np.array([0, 1]), np.array([infinity, 4.0])
    got = result("scatter_reduce.two", x, index, source, dim=0, reduce=how, include_self=False)
    agree(got, [infinity, 4.0])


@pytest.mark.parametrize(("said", "how"), [("add", "sum"), ("multiply", "prod")])
@pytest.mark.parametrize("dim", [0, -1])
def test_older_names_of_reductions(said: str, how: str, dim: int) -> None:
    index, source = drawn(dim)
    wanted = scattered(X, index, source, dim, how)
    agree(result("scatter.reduce", X, index, source, dim=dim, reduce=said), wanted)
    if how == "sum":
        agree(result("scatter_add", X, index, source, dim=dim), wanted)
    wanted = scattered(X, index, np.full(index.shape, -1.5), dim, how)
    agree(result("scatter.value_reduce", X, index, -1.5, dim=dim, reduce=said), wanted)


@pytest.mark.parametrize(
    ("x", "index", "source", "written", "added"),
    [
        (1.5, 0, 4.0, 4.0, 5.5),
        (1.5, [0], [4.0], 4.0, 5.5),
        (1.5, [0], 4.0, 4.0, 5.5),
        (1.5, [0, 0], [4.0, 5.0], 5.0, 10.5),
        ([1.0, 2.0], 1, 4.0, [1.0, 4.0], [1.0, 6.0]),
        ([1.0, 2.0], 1, [4.0, 9.0], [1.0, 4.0], [1.0, 6.0]),
    ],
)
def test_what_has_no_dimensions_counts_as_one_element(
    x: Any, index: Any, source: Any, written: Any, added: Any
) -> None:
    given = np.array(x), np.array(index)
    agree(result("scatter.src", *given, np.array(source), dim=-1), written)
    agree(result("scatter_add", *given, np.array(source), dim=0), added)
    agree(result("scatter.value", *given, 7.0, dim=0), np.where(np.array(written) == x, x, 7.0))


def test_without_indices_nothing_changes() -> None:
    none = np.zeros((0, 3, 4), np.int64)
    agree(result("scatter.src", X, none, X, dim=0), X)
    agree(result("index_add", X, np.zeros(0, np.int64), X[:0], dim=0), X)
    agree(result("index_put", X, [np.zeros(0, np.int64)], np.zeros((0, 3, 4))), X)


def test_an_index_outside_writes_nothing() -> None:
    agree(result("scatter.src", np.zeros(2), np.array([2, 1, -1]), np.array([5.0, 6.0, 7.0]), dim=0), [0.0, 6.0])


def spread(index: Any, dim: int) -> Any:
    """The indices of one dimension for every element of X."""
    shape = [1] * 3
    shape[dim] = len(index)
    return np.broadcast_to(index.reshape(shape), [len(index) if d == dim % 3 else n for d, n in enumerate(X.shape)])


INDEX = np.array([1, 0, 1, 1])


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("alpha", [1, 2, -0.5])
def test_index_add(dim: int, alpha: float) -> None:
    wide = spread(INDEX, dim)
    source = RNG.integers(-9, 10, wide.shape).astype(np.float64)
    wanted = scattered(X, wide, alpha * source, dim, "sum")
    agree(result("index_add", X, INDEX, source, dim=dim, alpha=alpha), wanted)
    if alpha == 1:
        agree(result("index_add", X, INDEX, source, dim=dim), wanted)


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("how", ["prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("include_self", [True, False])
def test_index_reduce(dim: int, how: str, include_self: bool) -> None:
    wide = spread(INDEX, dim)
    source = RNG.integers(-9, 10, wide.shape).astype(np.float64)
    got = result("index_reduce", X, INDEX, source, dim=dim, reduce=how, include_self=include_self)
    agree(got, scattered(X, wide, source, dim, how, include_self=include_self))
    if include_self:
        agree(result("index_reduce", X, INDEX, source, dim=dim, reduce=how), got)


def test_entries_of_a_number() -> None:
    agree(result("index_add", np.array(1.5), np.array([0]), np.array([2.0]), dim=0), 3.5)
    agree(result("index_add", np.array(1.5), np.array(0), np.array(2.0), dim=0), 3.5)
    agree(result("index_fill.int_Scalar", np.array(1.5), np.array([0]), 2.0, dim=0), 2.0)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_index_fill(dim: int) -> None:
    wanted = X.copy()
    np.moveaxis(wanted, dim, 0)[[0, -1]] = 9.0
    agree(result("index_fill.int_Scalar", X, np.array([0, -1]), 9.0, dim=dim), wanted)
    agree(result("index_fill.int_Tensor", X, np.array([0, -1]), np.array(9.0), dim=dim), wanted)


ROWS, PLACES = np.array([1, 0, -1]), np.array([[2], [-3]])


@pytest.mark.parametrize("accumulate", [True, False])
@pytest.mark.parametrize("indices", [[ROWS], [None, ROWS], [ROWS, PLACES], [None, ROWS, PLACES], [ROWS, None, PLACES]])
def test_index_put(indices: list[Any], accumulate: bool) -> None:
    key = tuple(slice(None) if i is None else i for i in indices)
    shape = X[key].shape
    for values in (100 + np.arange(float(np.prod(shape))).reshape(shape), np.array(50.0)):
        wanted = X.copy()
        if accumulate:
            np.add.at(wanted, key, values)
        else:
            wanted[key] = values
        agree(result("index_put", X, indices, values, accumulate=accumulate), wanted)


def test_values_are_put_and_not_added_unless_told() -> None:
    agree(result("index_put", np.ones(2), [np.array([1])], np.array([5.0])), [1.0, 5.0])
    agree(result("put", np.ones(2), np.array([1]), np.array([5.0])), [1.0, 5.0])


MASK = np.array([[True, False, True], [False, False, True]])


@pytest.mark.parametrize("mask", [MASK, MASK[:, 0]])
@pytest.mark.parametrize("value", [np.array(9.0), np.array([9.0]), np.array([[1.0, 2.0, 3.0, 4.0]])])
def test_one_value_is_put_wherever_a_mask_holds(mask: Any, value: Any) -> None:
    wanted, more = X.copy(), X.copy()
    wanted[mask] = value
    more[mask] += value
    agree(result("index_put", X, [mask], value), wanted)
    agree(result("index_put", X, [mask], value, accumulate=True), more)


@pytest.mark.parametrize(
    ("indices", "values"),
    [
        ([MASK], np.ones((3, 4))),  # as many as there are truths
        ([None, np.array([True, False, True])], np.array(1.0)),
        ([MASK[:, 0], ROWS], np.array(1.0)),
    ],
)
def test_several_values_under_a_mask_are_refused(indices: list[Any], values: Any) -> None:
    with pytest.raises(UnsupportedError, match=r"several values written .* a mask holds\n  try: use torch\.where or"):
        result("index_put", X, indices, values)


@pytest.mark.parametrize("accumulate", [True, False])
def test_put_counts_through_all_elements(accumulate: bool) -> None:
    index, source = np.array([[0, 23], [-1, 5]]), np.array([[1.0, 2.0], [3.0, 4.0]])
    wanted = X.copy()
    if accumulate:
        np.add.at(wanted.ravel(), index, source)
    else:
        wanted.put(index, source)
    agree(result("put", X, index, source, accumulate=accumulate), wanted)


def test_masked_scatter_takes_elements_in_order() -> None:
    source = 100 + np.arange(8.0).reshape(2, 4)
    wanted = X[:, :, 0].copy()
    wanted[MASK] = source.ravel()[:3]
    agree(result("masked_scatter", X[:, :, 0], MASK, source), wanted)
    agree(result("masked_scatter", np.array([1.0, 2.0, 3.0]), MASK, source), [[100, 2, 101], [1, 2, 102.0]])


def test_errors_that_are_allowed() -> None:
    once = dict.fromkeys(("scatter_src", "masked_scatter"), (1, False))
    once |= dict.fromkeys(("scatter_value", "index_fill"), (1, True))
    sums = "scatter_reduced scatter_add scatter_reduce index_add index_reduce index_put put"
    wanted = once | dict.fromkeys(sums.split(), (16, False)) | {"scatter_value_reduced": (16, True)}
    assert budgets(MODULE) == wanted


def test_samples_fit() -> None:
    check_samples(MODULE)
