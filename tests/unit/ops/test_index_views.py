"""Index views against numpy: every element of a view is the element of the base that numpy finds."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import prod
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from spyre_mlir.ops.index_views import IndexView, NotAView, common_cuts

Array = NDArray[Any]
Step = Callable[[Random, IndexView, Array], tuple[IndexView, Array]]


def read(view: IndexView, base: Array) -> Array:
    """The elements of a view, one by one, from its definition alone."""
    out = np.empty(view.shape, base.dtype)
    for index in np.ndindex(*view.shape):
        at: dict[int, int] = {}
        for place, axes in zip(index, view.dims, strict=True):
            for axis in reversed(axes):
                place, at[axis] = divmod(place, view.extents[axis])
        where = (o + sum(c * at[a] for a, c in row) for o, row in zip(view.offsets, view.terms, strict=True))
        out[index] = base[tuple(where)]
    return out


def permute(random: Random, view: IndexView, array: Array) -> tuple[IndexView, Array]:
    order = tuple(random.sample(range(array.ndim), array.ndim))
    return view.permute(order), array.transpose(order)


def transpose(random: Random, view: IndexView, array: Array) -> tuple[IndexView, Array]:
    if array.ndim == 0:
        return view, array
    a, b = random.randrange(-array.ndim, array.ndim), random.randrange(array.ndim)
    return view.transpose(a, b), array.swapaxes(a, b)


def unsqueeze(random: Random, view: IndexView, array: Array) -> tuple[IndexView, Array]:
    dim = random.randint(-array.ndim - 1, array.ndim)
    return view.unsqueeze(dim), np.expand_dims(array, dim)


def squeeze(random: Random, view: IndexView, array: Array) -> tuple[IndexView, Array]:
    return view.squeeze(), array.squeeze()


def expand(random: Random, view: IndexView, array: Array) -> tuple[IndexView, Array]:
    shape = tuple(random.choice((1, 2, 3)) if e == 1 else e for e in array.shape)
    return view.expand((*shape[:0], *shape)), np.broadcast_to(array, shape)


def cut(random: Random, view: IndexView, array: Array) -> tuple[IndexView, Array]:
    if array.ndim == 0:
        return view, array
    dim = random.randrange(array.ndim)
    start, step = random.randrange(array.shape[dim]), random.choice((1, 1, 2, 3))
    end = random.randint(start + 1, array.shape[dim])
    inside = (slice(None),) * dim
    return view.slice(dim, start, end, step), array[(*inside, slice(start, end, step))]


def select(random: Random, view: IndexView, array: Array) -> tuple[IndexView, Array]:
    if array.ndim == 0:
        return view, array
    dim = random.randrange(array.ndim)
    index = random.randrange(-array.shape[dim], array.shape[dim])
    return view.select(dim, index), array.take(index, axis=dim)


def reshape(random: Random, view: IndexView, array: Array) -> tuple[IndexView, Array]:
    left = array.size
    shape: list[int] = []
    while left > 1 and len(shape) < 4:
        extent = random.choice([d for d in range(1, left + 1) if left % d == 0])
        shape.append(extent)
        left //= extent
    shape.append(left)
    return view.reshape(tuple(shape)), array.reshape(shape)


STEPS: tuple[Step, ...] = (permute, transpose, unsqueeze, squeeze, expand, cut, cut, select, reshape, reshape)


@settings(max_examples=300, derandomize=True, database=None)
@given(st.integers(0, 2**32))
def test_chains_of_views_read_what_numpy_reads(seed: int) -> None:
    random = Random(seed)
    base = np.arange(prod(shape := tuple(random.choice((1, 2, 3, 4, 6)) for _ in range(random.randint(0, 4)))))
    base = base.reshape(shape)
    view, array = IndexView.identity(shape), base
    for _ in range(random.randint(1, 6)):
        try:
            view, array = random.choice(STEPS)(random, view, array)
        except NotAView:
            continue
        assert view.shape == array.shape
        np.testing.assert_array_equal(read(view, base), array)
        assert view.repeats == (len(np.unique(array)) < array.size)
        assert not view.is_identity or np.array_equal(array, base)


@pytest.mark.parametrize(
    ("view", "same"),
    [
        (IndexView.identity((2, 1, 6)), True),
        (IndexView.identity(()), True),
        (IndexView.identity((2, 6)).reshape((2, 2, 3)).reshape((2, 6)), True),
        (IndexView.identity((2, 6)).transpose(0, 1).transpose(-1, 0), True),
        (IndexView.identity((2, 6)).slice(1, 0, 9), True),
        (IndexView.identity((2, 2)).transpose(0, 1), False),
        (IndexView.identity((2, 6)).reshape((2, 2, 3)).permute((0, 2, 1)).reshape((2, 6)), False),
        (IndexView.identity((2, 6)).reshape((12,)), False),
        (IndexView.identity((3, 6)).slice(0, 1, 3), False),
        (IndexView.identity((6,)).slice(0, 1, 2).expand((6,)), False),
        (IndexView.identity((1, 6)).expand((6, 6)), False),
    ],
)
def test_a_view_that_is_the_base(view: IndexView, same: bool) -> None:
    assert view.is_identity is same


@pytest.mark.parametrize(
    ("view", "axes"),
    [
        (IndexView.identity((2, 6)).reshape((2, 2, 3)).reshape((2, 6)), [1, 1]),
        (IndexView.identity((24,)).reshape((2, 3, 4)).reshape((24,)), [1]),
        (IndexView.identity((4, 24)).reshape((4, 2, 3, 4)).permute((1, 0, 2, 3)).reshape((2, 4, 12)), [1, 1, 1]),
        (IndexView.identity((24,)).reshape((2, 3, 4)).permute((0, 2, 1)).reshape((2, 12)), [1, 2]),
        (IndexView.identity((4, 6)).reshape((24,)), [2]),
        (IndexView.identity((12,)).reshape((3, 4)).slice(1, 0, 2).reshape((6,)), [2]),
        (IndexView.identity((5, 1, 1)).expand((5, 2, 3)).reshape((5, 6)), [1, 1]),
    ],
)
def test_axes_that_walk_the_base_as_one_are_one(view: IndexView, axes: list[int]) -> None:
    assert [len(found) for found in view.dims] == axes


@pytest.mark.parametrize(
    ("shape", "other", "common"),
    [
        ((4, 65, 64), (130, 2, 64), (260, 64)),
        ((4, 2, 65), (65, 8), (520,)),
        ((2, 3, 5), (6, 5), (6, 5)),
        ((6, 5), (2, 3, 5), (6, 5)),
        ((2, 1, 3), (2, 3, 1), (2, 3)),
        ((1, 1), (), ()),
    ],
)
def test_what_two_shapes_both_cut_further(
    shape: tuple[int, ...], other: tuple[int, ...], common: tuple[int, ...]
) -> None:
    assert common_cuts(shape, other) == common


@pytest.mark.parametrize("shape", [(4, 65, 64), (4, 2, 65), (6,), (2, 3)])
def test_a_common_shape_is_a_view_of_both(shape: tuple[int, ...]) -> None:
    for other in [s for s in product((1, 2, 5, 13, 65, 130, 6, 3), repeat=2) if prod(s) == prod(shape)]:
        common = common_cuts(shape, other)
        assert IndexView.identity(common).reshape(shape).shape == shape
        assert IndexView.identity(common).reshape(other).shape == other


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda v: v.permute((0, 0)), "permutation"),
        (lambda v: v.select(0, 4), "index 4"),
        (lambda v: v.expand((5, 6)), "expand of an extent 4 to 5"),
        (lambda v: v.expand((6,)), "expand to"),
        (lambda v: v.reshape((5, -1)), "reshape of 24 elements"),
        (lambda v: v.transpose(0, 2), "dimension 2 of a tensor of rank 2"),
    ],
)
def test_wrong_views_are_refused(wrong: Callable[[IndexView], object], message: str) -> None:
    with pytest.raises(IndexError, match=message):
        wrong(IndexView.identity((4, 6)))


def test_views_that_need_a_copy_say_so() -> None:
    view = IndexView.identity((4, 6))
    with pytest.raises(NotAView, match="slice"):
        view.reshape((24,)).slice(0, 1, 20)
    with pytest.raises(NotAView, match="reshape"):
        view.reshape((3, 8))
