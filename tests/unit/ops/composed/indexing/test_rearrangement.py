"""Elements in other places, against numpy's functions of the same names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided, sliding_window_view

from spyre_mlir.errors import ConstraintError
from spyre_mlir.ops.composed.indexing.rearrangement import by_places
from tests.unit.ops.cases import agree, budgets, calls, check_samples, result, result_of_body

MODULE = "spyre_mlir.ops.composed.indexing.rearrangement"
X = np.arange(24.0).reshape(2, 3, 4) - 6.5
KINDS = [X, X.astype(np.int64), X % 3 > 1]
LONG = np.arange(72.0).reshape(2, 36)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_entries_are_taken_by_their_places(dim: int) -> None:
    places = np.array([1, 0, 1, 1])
    agree(result_of_body(lambda b, x, p: by_places(b, x, p, dim), X, places), X.take(places, dim))


@pytest.mark.parametrize("dim", [0, 1, 3, -1, -4])
def test_stack(dim: int) -> None:
    agree(result("stack", [X, -X, X * 2], dim=dim), np.stack([X, -X, X * 2], dim))


def test_tensors_are_stacked_in_front_unless_told() -> None:
    agree(result("stack", [X, -X]), np.stack([X, -X]))


def test_tensors_of_different_shapes_are_not_stacked() -> None:
    with pytest.raises(ConstraintError, match=r"C1: shapes \[\(2, 3, 4\), \(2, 3\)\] differ"):
        result("stack", [X, X[..., 0]])


@pytest.mark.parametrize("dims", [(0,), (1, 2), (-1,), (0, -3), (-2, 0), ()])
def test_flip(dims: tuple[int, ...]) -> None:
    agree(result("flip", X, dims=dims), np.flip(X, tuple({d % 3 for d in dims})))


def test_a_number_is_flipped_to_itself() -> None:
    agree(result("flip", np.array(2.5), dims=()), 2.5)
    agree(result("flip", np.array(2.5), dims=(0,)), 2.5)


@pytest.mark.parametrize(("count", "in_parts"), [(16, True), (17, False)])
def test_many_entries_are_flipped_by_their_places(count: int, in_parts: bool) -> None:
    x = LONG[:, :count]
    agree(result("flip", x, dims=(1,)), x[:, ::-1])
    called = calls("flip", x, dims=(1,))
    assert ("cat" in called) is in_parts
    assert "div.Tensor" not in called  # every place is inside: no NaN to make


@pytest.mark.parametrize(
    ("shifts", "dims"),
    [((1,), (0,)), ((2, -1), (1, 2)), ((5,), (-2,)), ((-7,), (2,)), ((4, 1), (-1, 0)), ((1, 1), (2, 2))],
)
def test_roll(shifts: tuple[int, ...], dims: tuple[int, ...]) -> None:
    agree(result("roll", X, shifts=shifts, dims=dims), np.roll(X, shifts, dims))


def test_roll_without_dimensions_goes_through_all() -> None:
    agree(result("roll", X, shifts=(5,)), np.roll(X, 5))
    agree(result("roll", X[:0], shifts=(1,), dims=(0,)), X[:0])


@pytest.mark.parametrize("x", KINDS)
@pytest.mark.parametrize("repeats", [(2, 1, 3), (1, 1, 1), (2, 3, 1, 1, 2), (2, 0, 1), (3, 1, 1, 1)])
def test_repeat(x: Any, repeats: tuple[int, ...]) -> None:
    agree(result("repeat", x, repeats=repeats), np.tile(x, repeats))


@pytest.mark.parametrize("dim", [0, 1, 2, -1, -3, None])
def test_repeat_interleave(dim: int | None) -> None:
    agree(result("repeat_interleave.self_int", X, repeats=3, dim=dim), np.repeat(X, 3, dim))


def test_a_number_is_repeated_along_a_new_dimension() -> None:
    agree(result("repeat_interleave.self_int", np.array(2.5), repeats=2), [2.5, 2.5])
    agree(result("repeat_interleave.self_int", np.array(2.5), repeats=2, dim=0), [2.5, 2.5])


def test_repeat_interleave_checks_the_size_it_is_told() -> None:
    agree(
        result("repeat_interleave.self_int", np.arange(3.0), repeats=2, output_size=6), [0.0, 0.0, 1.0, 1.0, 2.0, 2.0]
    )
    with pytest.raises(ConstraintError, match="C1: output_size 5, expected 6"):
        result("repeat_interleave.self_int", np.arange(3.0), repeats=2, output_size=5)


@pytest.mark.parametrize(
    ("shape", "dimension", "size", "step"),
    [
        ((2, 36), 1, 4, 4),  # tiles
        ((2, 38), -1, 5, 5),
        ((9, 3), 0, 5, 2),  # fewer windows than entries
        ((9, 3), -2, 3, 3),
        ((9, 3), 0, 2, 1),  # more
        ((3, 11), 1, 3, 4),
        ((2, 16, 2), 1, 4, 1),
        ((2, 36, 2), 1, 18, 1),  # many of both
        ((40, 2), 0, 17, 1),
        ((53, 2), 0, 19, 2),
    ],
)
def test_unfold(shape: tuple[int, ...], dimension: int, size: int, step: int) -> None:
    x = np.arange(float(np.prod(shape))).reshape(shape)
    at = dimension % x.ndim
    windows = np.moveaxis(np.moveaxis(sliding_window_view(x, size, at), at, 0)[::step], 0, at)
    agree(result("unfold", x, dimension=dimension, size=size, step=step), windows)


def test_the_window_of_a_number() -> None:
    agree(result("unfold", np.array(2.5), dimension=0, size=1, step=1), [2.5])


def test_many_windows_of_many_entries_are_selected_by_place() -> None:
    windows = {(1, 21): True, (1, 20): False, (1, 17): False, (2, 17): True, (1, 3): True}
    for (step, size), in_parts in windows.items():
        found = "cat" in calls("unfold", LONG, dimension=1, size=size, step=step)
        assert found is in_parts, (step, size)


DIAGONALS = [(0, 0, 1), (1, 0, 1), (-1, 1, 2), (2, 2, 0), (-2, -1, -2), (3, 1, -1), (-1, 0, 2)]


@pytest.mark.parametrize("x", KINDS)
@pytest.mark.parametrize(("offset", "dim1", "dim2"), [*DIAGONALS, (4, 1, 2), (-9, 0, 1)])
def test_diagonal(x: Any, offset: int, dim1: int, dim2: int) -> None:
    wanted = np.diagonal(x, offset, dim1, dim2) if abs(offset) < 4 else np.zeros((2 if dim1 else 4, 0), x.dtype)
    for overload in ("diagonal", "diagonal_copy"):
        agree(result(overload, x, offset=offset, dim1=dim1, dim2=dim2), wanted)


def test_the_first_two_dimensions_have_the_diagonal_unless_told() -> None:
    agree(result("diagonal", X), np.diagonal(X))


@pytest.mark.parametrize("x", [np.array([[1.5, -2.0], [3.0, 4.5]]), np.array([1, -2, 3]), np.array([True, False])])
@pytest.mark.parametrize(("offset", "dim1", "dim2"), [(0, -2, -1), (1, -2, -1), (-2, 0, 1), (1, 1, 0), (-1, 0, -1)])
def test_diag_embed(x: Any, offset: int, dim1: int, dim2: int) -> None:
    side = x.shape[-1] + abs(offset)
    wanted = np.zeros((*x.shape[:-1], side, side), x.dtype)
    for n in range(x.shape[-1]):
        wanted[..., n + max(0, -offset), n + max(0, offset)] = x[..., n]
    wanted = np.moveaxis(wanted, (-2, -1), (dim1, dim2))
    agree(result("diag_embed", x, offset=offset, dim1=dim1, dim2=dim2), wanted)


def test_the_last_two_dimensions_get_the_diagonal_unless_told() -> None:
    agree(result("diag_embed", np.array([[1.0, 2.0]])), [[[1.0, 0.0], [0.0, 2.0]]])


@pytest.mark.parametrize(("offset", "dim1", "dim2"), DIAGONALS)
def test_diagonal_scatter(offset: int, dim1: int, dim2: int) -> None:
    wanted = X.copy()
    line = np.diagonal(wanted, offset, dim1, dim2)
    line.setflags(write=True)
    source = 100 + np.arange(float(line.size)).reshape(line.shape)
    line[...] = source
    agree(result("diagonal_scatter", X, source, offset=offset, dim1=dim1, dim2=dim2), wanted)


def test_a_whole_diagonal_is_replaced_unless_told() -> None:
    agree(result("diagonal_scatter", np.ones((2, 2)), np.array([5.0, 6.0])), [[5.0, 1.0], [1.0, 6.0]])


@pytest.mark.parametrize("x", [X[0], X[0].T.astype(np.int64)])
def test_trace(x: Any) -> None:
    agree(result("trace", x), np.trace(x))


def test_the_trace_of_short_integers_is_long() -> None:
    agree(result("trace", np.diag([100, 100]), element="i8"), 200)


WALKS = [((3, 2), (2, 1), 1), ((2, 4), (0, 5), 3), ((4,), (6,), None), ((2, 2, 3), (1, 8, 2), 4), ((), (), 7)]


@pytest.mark.parametrize(("size", "stride", "start"), WALKS)
def test_as_strided(size: tuple[int, ...], stride: tuple[int, ...], start: int | None) -> None:
    wanted = as_strided(X.ravel()[start or 0 :], size, [8 * s for s in stride])
    agree(result("as_strided", X, size=size, stride=stride, storage_offset=start), wanted)


@pytest.mark.parametrize(("size", "stride", "start"), [w for w in WALKS if w[0]])
def test_as_strided_scatter(size: tuple[int, ...], stride: tuple[int, ...], start: int | None) -> None:
    wanted = X.copy()
    source = 100 + np.arange(float(np.prod(size))).reshape(size)
    as_strided(wanted.ravel()[start or 0 :], size, [8 * s for s in stride])[...] = source
    got = result("as_strided_scatter", X, source, size=size, stride=stride, storage_offset=start)
    agree(got, wanted)


def test_a_copy_has_the_shape_and_the_type_of_what_it_replaces() -> None:
    agree(result("copy", np.zeros((2, 3), np.int64), np.array([1.5, -2.5, 3.0])), [[1, -2, 3]] * 2)
    agree(result("copy", np.zeros(2), np.array([1.5, -2.5])), [1.5, -2.5])


TRUTH = np.array([True, False])


def test_one_number_fills_a_shape() -> None:
    agree(result("fill.Scalar", X[0], 2.5), np.full((3, 4), 2.5))
    agree(result("fill.Tensor", X[0], np.array(3)), np.full((3, 4), 3.0))
    agree(result("fill.Scalar", TRUTH, 0.5), [True, True])
    agree(result("fill.Scalar", TRUTH, 0), [False, False])
    agree(result("full_like", TRUTH, fill_value=7), [True, True])
    agree(result("full_like", X[0], fill_value=-3), np.full((3, 4), -3.0))
    agree(result("full_like", X[0], fill_value=-3, dtype="i64"), np.full((3, 4), -3))
    agree(result("new_full", X, size=(2, 1), fill_value=2.5), [[2.5], [2.5]])
    agree(result("new_full", X, size=(2,), fill_value=2, dtype="i1"), [True, True])


LIKE = {"zeros_like": 0, "empty_like": 0, "ones_like": 1}
NEW = {"new_zeros": 0, "new_empty": 0, "new_ones": 1}


@pytest.mark.parametrize("overload", LIKE)
def test_constants_of_a_shape(overload: str) -> None:
    agree(result(overload, X), np.full_like(X, LIKE[overload]))
    agree(result(overload, X, dtype="i64"), np.full(X.shape, LIKE[overload]))


@pytest.mark.parametrize("overload", NEW)
def test_constants_of_an_element_type(overload: str) -> None:
    agree(result(overload, np.array([1, 2]), size=(3, 1)), np.full((3, 1), NEW[overload]))
    agree(result(overload, np.array([1, 2]), size=(2,), dtype="f32"), np.full(2, float(NEW[overload])))


def test_errors_that_are_allowed() -> None:
    moved = (
        "flip roll repeat repeat_interleave unfold diagonal diag_embed diagonal_scatter as_strided as_strided_scatter"
    )
    exact = dict.fromkeys([*moved.split(), "zeros_like", "ones_like", "new_zeros", "new_ones"], (0, False))
    once = dict.fromkeys(("copy", "fill", "full_like", "new_full"), (1, False))
    assert budgets(MODULE) == exact | once | {"stack": (1, True), "trace": (16, False)}


def test_samples_fit() -> None:
    check_samples(MODULE)
