"""Pools, against every window looked at one by one, and the places of windows worked out by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import ceil
from typing import Any

import numpy as np
import pytest
import torch

from spyre_mlir.errors import ConstraintError, UnsupportedError
from spyre_mlir.hw.formats import DL16_LARGEST
from spyre_mlir.ops.composed.nn import pooling
from spyre_mlir.ops.composed.nn.pooling import Slide
from tests.unit.ops.evaluation import (
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

RNG = np.random.default_rng(5)
ROW = np.array([[3.0, -1.0, 4.0, 4.0, -5.0, 9.0, 2.0]])
IMAGE = RNG.integers(-9, 9, (2, 5, 4)).astype(np.float64)  # with ties
Window = tuple[slice, ...]


@pytest.mark.parametrize(
    ("slide", "places", "missing", "counts", "without_padding"),
    [
        (Slide(7, 3, 2, 0, 1, False), 3, 0, [3, 3, 3], [3, 3, 3]),
        (Slide(8, 3, 2, 0, 1, False), 3, 0, [3, 3, 3], [3, 3, 3]),
        (Slide(8, 3, 2, 0, 1, True), 4, 1, [3, 3, 3, 2], [3, 3, 3, 2]),
        (Slide(5, 2, 2, 1, 1, True), 3, 0, [2, 2, 2], [1, 2, 2]),
        (Slide(4, 3, 2, 1, 1, True), 3, 2, [3, 3, 2], [2, 3, 1]),
        (Slide(4, 3, 1, 1, 1, False), 4, 1, [3, 3, 3, 3], [2, 3, 3, 2]),
        (Slide(3, 2, 2, 1, 1, True), 2, 0, [2, 2], [1, 2]),
        (Slide(2, 2, 2, 0, 1, True), 1, 0, [2], [2]),
    ],
)
def test_a_window_slides(
    slide: Slide, places: int, missing: int, counts: list[int], without_padding: list[int]
) -> None:
    assert (slide.places, slide.missing) == (places, missing)
    assert (slide.counts(True), slide.counts(False)) == (counts, without_padding)


def test_a_dilated_window_slides() -> None:
    assert [Slide(9, 2, 2, 0, d, False).places for d in (1, 2, 3, 8)] == [4, 4, 3, 1]
    assert Slide(6, 2, 1, 1, 3, True).missing == 1


def spread(values: Sequence[int] | None, rank: int, otherwise: Sequence[int]) -> Sequence[int]:
    values = values or otherwise
    return list(values) * rank if len(values) == 1 else values


def windows(x: np.ndarray, kernel: Sequence[int], stride: Any, padding: Any, dilation: Any, up: bool) -> Any:
    """By the place of the result: the indices of the elements of its window along every dimension."""
    rank, axes = len(kernel), []
    facts = (spread(stride, rank, kernel), spread(padding, rank, (0,)), spread(dilation, rank, (1,)))
    for n, k, s, p, d in zip(x.shape[-rank:], kernel, *facts, strict=True):
        starts = range(-p, n, s)
        full = [a for a in starts if a + d * (k - 1) < n + p]
        # Rounded up, a window may reach over the end that the one before has not reached.
        starts = full + [a for a in starts if up and a not in full and a - s + d * (k - 1) + 1 < n + p]
        axes.append([[a + t * d for t in range(k) if 0 <= a + t * d < n] for a in starts])
    return axes


def pooled(x: np.ndarray, axes: Sequence[Sequence[Sequence[int]]], reduce: Callable[[np.ndarray], Any]) -> np.ndarray:
    """`reduce` of every window, which it gets as [...outer, elements in row-major order]."""
    rank = len(axes)
    outer = x.shape[:-rank]
    columns = [reduce(x[(..., *np.ix_(*inner))].reshape(*outer, -1)) for inner in product(*axes)]
    return np.stack(columns, -1).reshape(*outer, *map(len, axes))


def first_places(x: np.ndarray, axes: Sequence[Sequence[Sequence[int]]]) -> np.ndarray:
    """Where the first of the largest elements of every window stands in its channel."""
    own = np.arange(np.prod(x.shape[-len(axes) :])).reshape(x.shape[-len(axes) :])
    flat = [own[np.ix_(*inner)].reshape(-1) for inner in product(*axes)]
    at = pooled(x, axes, lambda elements: elements.argmax(-1))
    columns = [f[c] for f, c in zip(flat, np.moveaxis(at.reshape(*at.shape[: -len(axes)], -1), -1, 0), strict=True)]
    return np.stack(columns, -1).reshape(at.shape)


CALLS: list[tuple[np.ndarray, dict[str, Any]]] = [
    (ROW, {"kernel_size": (3,)}),
    (ROW, {"kernel_size": (3,), "stride": (2,), "padding": (1,)}),
    (ROW, {"kernel_size": (4,), "stride": (2,), "padding": (2,), "ceil_mode": True}),
    (ROW[None], {"kernel_size": (2,), "stride": (3,), "ceil_mode": True}),
    (IMAGE, {"kernel_size": (2, 3)}),
    (IMAGE, {"kernel_size": (3, 2), "stride": (2, 1), "padding": (1, 0), "ceil_mode": True}),
    (IMAGE[None], {"kernel_size": (3, 2), "stride": (1,), "padding": (1,)}),
    (IMAGE[None], {"kernel_size": (2, 3, 1), "stride": (1, 2, 2), "padding": (1, 0, 0)}),
]
DILATED: list[tuple[np.ndarray, dict[str, Any]]] = [
    (ROW, {"kernel_size": (2,), "stride": (2,), "padding": (1,), "dilation": (3,)}),
    (IMAGE, {"kernel_size": (2, 2), "stride": (1,), "dilation": (3, 2)}),
]


def axes_of(x: np.ndarray, given: dict[str, Any]) -> Any:
    facts = (given.get(n) for n in ("stride", "padding", "dilation"))
    return windows(x, given["kernel_size"], *facts, given.get("ceil_mode", False))


@pytest.mark.parametrize(("x", "given"), CALLS + DILATED)
def test_the_largest_of_every_window(x: np.ndarray, given: dict[str, Any]) -> None:
    rank, axes = len(given["kernel_size"]), axes_of(x, given)
    same(result(f"max_pool{rank}d", x, **given), pooled(x, axes, lambda e: e.max(-1)))
    got = results(f"max_pool{rank}d_with_indices", x, **given)
    all_same(got, [pooled(x, axes, lambda e: e.max(-1)), first_places(x, axes)])


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int16, np.int32, np.float64])
def test_padding_loses_to_the_least_number_of_a_type(kind: Any) -> None:
    lowest = -DL16_LARGEST if kind is np.float64 else np.iinfo(kind).min
    x = np.full((1, 3), lowest, kind)
    given = {"kernel_size": (2,), "stride": (2,), "padding": (1,)}
    wide = np.float64 if kind is np.float64 else np.int64
    same(result("max_pool1d", x, **given), np.full((1, 2), lowest, wide))
    values, places = results("max_pool1d_with_indices", x, **given)
    same(values, np.full((1, 2), lowest, wide))
    if kind is not np.float64:  # a float that small is beyond what an element may be
        same(places, [[0, 1]])
    element = types(calling("max_pool1d_with_indices", **given), x)[0][1]
    assert element == types(lambda b, x: x, x)[0][1]


@pytest.mark.parametrize(("x", "given"), CALLS)
def test_means_of_windows(x: np.ndarray, given: dict[str, Any]) -> None:
    rank, axes = len(given["kernel_size"]), axes_of(x, given)
    overload = f"avg_pool{rank}d"
    same(result(overload, x, **given, count_include_pad=False), pooled(x, axes, lambda e: e.mean(-1)))
    sums = pooled(x, axes, lambda e: e.sum(-1))
    same(result(overload, x, **given, divisor_override=-3), sums / -3)
    if not given.get("ceil_mode"):
        same(result(overload, x, **given), sums / np.prod(given["kernel_size"]))


def test_padding_counts_but_what_is_beyond_it_does_not() -> None:
    x = np.array([[1.0, 2.0, 3.0, 4.0]])
    given = {"kernel_size": (3,), "stride": (2,), "padding": (1,), "ceil_mode": True}
    same(result("avg_pool1d", x, **given), [[3 / 3, 9 / 3, 4 / 2]])
    same(result("avg_pool1d", x, **given, count_include_pad=False), [[3 / 2, 9 / 3, 4 / 1]])


@pytest.mark.parametrize(("kernel", "padding"), [(1280, 0), (1280, 640), (7, 3)])
@pytest.mark.parametrize("include", [False, True])
def test_one_window_is_one_sum_however_far_it_reaches(kernel: int, padding: int, include: bool) -> None:
    x = np.arange(24.0).reshape(1, 2, 3, 4)
    given = {"kernel_size": (kernel, kernel), "padding": (padding, padding), "ceil_mode": True}
    given |= {"stride": (1280, 1280), "count_include_pad": include}
    same(result("avg_pool2d", x, **given), torch.nn.functional.avg_pool2d(torch.from_numpy(x), **given).numpy())
    assert "cat" not in made(calling("avg_pool2d", **given), x)


def test_means_of_single_elements_divide_by_nothing() -> None:
    assert made(calling("avg_pool1d", kernel_size=(1,), stride=(1,)), ROW) == []


@pytest.mark.parametrize(
    ("shape", "given", "message"),
    [
        ((4, 4), {"kernel_size": (2, 2)}, "C1: input of rank 2, expected 3 or 4"),
        ((1, 1, 1, 4, 4), {"kernel_size": (2, 2)}, "C1: input of rank 5, expected 3 or 4"),
        ((1, 4), {"kernel_size": (3,), "padding": (2,)}, "C2: padding 2 of a window of 3"),
        ((1, 4), {"kernel_size": (5,)}, "C3: a window of 5 over 4 elements"),
    ],
)
def test_windows_that_do_not_fit_are_refused(shape: tuple[int, ...], given: dict[str, Any], message: str) -> None:
    rank = len(given["kernel_size"])
    for overload in (f"max_pool{rank}d", f"max_pool{rank}d_with_indices", f"avg_pool{rank}d"):
        with pytest.raises(ConstraintError, match=message):
            types(calling(overload, **given), np.zeros(shape))


def adaptive(x: np.ndarray, sizes: tuple[int, ...]) -> Any:
    """Windows from floor(i n / m) to ceil((i + 1) n / m), as torch's documentation has them."""
    extents = x.shape[-len(sizes) :]
    return [[range(i * n // m, ceil((i + 1) * n / m)) for i in range(m)] for n, m in zip(extents, sizes, strict=True)]


SIZES = [(ROW, (7,)), (ROW, (3,)), (ROW, (9,)), (ROW[:, :6], (2,)), (IMAGE, (3, 2)), (IMAGE, (5, 3)), (IMAGE, (1, 1))]
DEEP = [(IMAGE[None], (2, 4, 3)), (IMAGE[None], (1, 5, 2))]


@pytest.mark.parametrize(("x", "sizes"), SIZES + DEEP)
def test_as_many_windows_as_asked_for(x: np.ndarray, sizes: tuple[int, ...]) -> None:
    axes, name = adaptive(x, sizes), f"pool{len(sizes)}d"
    overloads = ["adaptive_avg_" + name] + ["_adaptive_avg_" + name] * (len(sizes) > 1)
    for overload in overloads:
        same(result(overload, x, output_size=sizes), pooled(x, axes, lambda e: e.mean(-1)))
    got = results("adaptive_max_" + name, x, output_size=sizes)
    all_same(got, [pooled(x, axes, lambda e: e.max(-1)), first_places(x, axes)])


def test_equal_windows_are_taken_in_one_step() -> None:
    assert made(calling("adaptive_avg_pool1d", output_size=(2,)), ROW[:, :6]) == [
        "view",
        "sum.dim_IntList",
        "squeeze.dim",
        "div.Tensor",
    ]


@pytest.mark.parametrize("overload", ["adaptive_avg_pool2d", "adaptive_max_pool2d"])
def test_sizes_that_do_not_fit_are_refused(overload: str) -> None:
    with pytest.raises(ConstraintError, match=r"C1: output_size \(0, 2\)"):
        types(calling(overload, output_size=(0, 2)), IMAGE)
    with pytest.raises(ConstraintError, match="C2: input of rank 2, expected 3 or 4"):
        types(calling(overload, output_size=(1, 1)), IMAGE[0])


def test_elements_are_put_where_their_indices_say() -> None:
    values, places = np.array([[[5.0, -3.0], [2.0, 7.0]]]), np.array([[[0, 4], [5, 5]]])
    same(result("max_unpool2d", values, places, output_size=(2, 3)), [[[5.0, 0.0, 0.0], [0.0, -3.0, 7.0]]])
    got = result("max_unpool3d", values[None], places[None], output_size=(1, 3, 2), stride=(1, 1, 1))
    same(got, [[[[5.0, 0.0], [0.0, 0.0], [-3.0, 7.0]]]])


def test_unpooling_that_compares_too_much_is_refused() -> None:
    values, places = np.zeros((1, 2, 1 << 10)), np.zeros((1, 2, 1 << 10), np.int64)
    found = types(calling("max_unpool2d", output_size=(2, 1 << 10)), values, places)
    assert found == [((1, 2, 1 << 10), "f32")]
    both = np.concatenate([values, values]), np.concatenate([places, places])
    with pytest.raises(UnsupportedError, match="unpooling 2048 elements to 2048 places, 2 times"):
        types(calling("max_unpool2d", output_size=(2, 1 << 10)), *both)


def test_declarations() -> None:
    check_samples(pooling.__name__)
    exact = {"max_pool", "max_pool_with_indices", "adaptive_max_pool", "max_unpool"}
    wanted = dict.fromkeys(exact, (0, False)) | {"avg_pool": (8, False), "adaptive_avg_pool": (8, False)}
    assert budgets(pooling.__name__) == wanted
    assert defaults(pooling.__name__) == {
        ("stride", ()),
        ("padding", (0,)),
        ("padding", ()),
        ("dilation", (1,)),
        ("ceil_mode", False),
        ("count_include_pad", True),
        ("divisor_override", None),
    }
