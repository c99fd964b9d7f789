"""Entries of one dimension written: at places known beforehand as parts of a whole, else by comparing positions."""

from __future__ import annotations

from math import nan
from typing import Any

from spyre_mlir.ops.annotations import Lanes, np
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.index_matching import named, written
from spyre_mlir.ops.helpers.reduction_dims import is_float
from spyre_mlir.ops.helpers.slicing import along, joined, moved, padded, part
from spyre_mlir.ops.native.views import TO_END
from spyre_mlir.ops.table import Sample, require


def index_copy_shape(
    self: tuple[int, ...], index: tuple[int, ...], source: tuple[int, ...], *, dim: int
) -> tuple[int, ...]:
    """Shape of self, once the others fit."""
    at = dim % max(len(self), 1)
    expected = (*self[:at], index[0] if index else 1, *self[at + 1 :]) if self else ()
    require("C1", source == expected, f"source of shape {source}, expected {expected}")
    return self


def _index_copy_meaning(self: Lanes, index: Lanes, source: Lanes, *, dim: int) -> Lanes:
    out = np.moveaxis(self.copy().reshape(self.shape or (1,)), dim, 0)
    out[index.astype(np.int64).reshape(-1)] = np.moveaxis(source.reshape(source.shape or (1,)), dim, 0)
    return np.moveaxis(out, 0, dim).reshape(self.shape)


@ATEN.composed(aten=["index_copy"], promote=True, ulps=1, meaning=_index_copy_meaning, shape=index_copy_shape)
def index_copy(b: Build, self: Lanes, index: Lanes, source: Lanes, *, dim: int) -> Any:
    """`self` with the entries of `dim` that `index` names replaced by those of `source`, in order.

    A position that `index` names twice holds the later entry. A position outside `self` makes all entries of that
    position's source NaN, at least one of them in the result, or is passed over where numbers are whole: the device has
    no way to refuse it.

    Constraints:
        C1: source has the shape of self, with as many entries along dim as index.
    """
    return _copied(b, self, index, source, dim)


def _copied(b: Build, self: Any, index: Any, source: Any, dim: int) -> Any:
    if not b.shape(self):
        line, place, one = (b.call("view", x, size=(1,)) for x in (self, index, source))
        return b.call("view", _copied(b, line, place, one, 0), size=())
    shape, at = b.shape(self), dim % len(b.shape(self))
    if not is_float(b, self):
        # Whole numbers and truth values know no NaN, and products round them.
        hits = named(b, b.call("view", index, size=(-1,)), shape[at])
        return moved(b, written(b, moved(b, self, at, -1), hits, moved(b, source, at, -1)), -1, at)
    places = b.call("arange.start_step", start=0, end=shape[at], step=1)
    number = b.cast(index, "f32")
    below, beyond = b.call("lt.Scalar", number, 0.0), b.call("ge.Scalar", number, float(shape[at]))
    outside = b.call("logical_or", below, beyond)
    count = b.shape(source)[at]
    if count == 1:
        one, wrong = b.call("view", number, size=(1,)), b.call("view", outside, size=(1,))
        here = b.call("logical_or", b.call("eq.Tensor", places, one), wrong)
        value = b.call("where.self", b.call("view", wrong, size=(1,) * len(shape)), nan, source)
        return b.call("where.self", along(b, here, len(shape), at), value, self)
    # Row p of the source goes to place index[p]: a product with a matrix of zeros and ones moves all of them.
    hits = b.call("eq.Tensor", b.call("unsqueeze", places, dim=1), number)
    ones = b.call("where.self", _named_again(b, number), 0.0, b.cast(hits, like=source))
    ones = b.call("where.self", outside, nan, ones)
    rows = _rows_moved(b, ones, source, at)
    here = b.call("ne.Scalar", b.call("amax", ones, dim=(1,)), 0.0)
    return b.call("where.self", along(b, here, len(shape), at), rows, self)


def _named_again(b: Build, number: Any) -> Any:
    """Whether each entry of a vector of places is named by a later entry too."""
    same = b.cast(b.call("eq.Tensor", b.call("unsqueeze", number, dim=1), number), "f32")
    # Row q, column p: q names the place of p, and comes later.
    return b.call("ne.Scalar", b.call("amax", b.call("tril", same, diagonal=-1), dim=(0,)), 0.0)


def _rows_moved(b: Build, ones: Any, value: Any, at: int) -> Any:
    """The product of a matrix with a tensor along dimension `at`, which becomes the second last for it."""
    if len(b.shape(value)) == 1:
        return b.call("squeeze.dim", b.call("matmul", ones, b.call("unsqueeze", value, dim=1)), dim=(1,))
    rows = b.call("transpose.int", value, dim0=at, dim1=-2)
    return b.call("transpose.int", b.call("matmul", ones, rows), dim0=at, dim1=-2)


@ATEN.composed(aten=["slice_scatter"], promote=True, ulps=1)
def slice_scatter(
    b: Build, self: Lanes, src: Lanes, *, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Any:
    """`self` with a range of `dim` replaced by `src`."""
    low, high, _ = slice(start, end).indices(b.shape(self)[dim])
    if step != 1:
        src, high = _among_others(b, self, src, dim, range(low, high, step)), max(low, high)
    return joined(b, [part(b, self, dim, 0, low), src, part(b, self, dim, max(low, high), TO_END)], dim)


def _among_others(b: Build, self: Any, src: Any, dim: int, places: range) -> Any:
    """The part of `self` from the first of some places on, every `step`-th element taken from `src`."""
    count, step, extent = len(places), places.step, len(places) * places.step
    own = part(b, self, dim, places.start, places.stop)
    at = dim % len(b.shape(self))
    shape = b.shape(self)
    own = padded(b, own, at, 0, max(0, extent - b.shape(own)[at]))
    # Blocks of `step` entries, the first of each replaced.
    blocks = b.call("view", own, size=(*shape[:at], count, step, *shape[at + 1 :]))
    rest = part(b, blocks, at + 1, 1, TO_END)
    made = b.call("cat", [b.call("unsqueeze", b.cast(src, like=self), dim=at + 1), rest], dim=at + 1)
    line = b.call("view", made, size=(*shape[:at], extent, *shape[at + 1 :]))
    return part(b, line, at, 0, len(range(places.start, places.stop)))


@ATEN.composed(aten=["select_scatter"], promote=True, ulps=1)
def select_scatter(b: Build, self: Lanes, src: Lanes, *, dim: int, index: int) -> Any:
    """`self` with one index of `dim` replaced by `src`."""
    at = index % b.shape(self)[dim]
    rank = len(b.shape(self))
    parts = [part(b, self, dim, 0, at), b.call("unsqueeze", src, dim=dim % rank), part(b, self, dim, at + 1, TO_END)]
    return joined(b, parts, dim)


ATEN.samples(
    index_copy,
    Sample(((2, 7, 4), (1,), (2, 1, 4)), {"dim": 1}),
    Sample(((2, 7, 4), (3,), (2, 3, 4)), {"dim": 1}),
    Sample(((), (1,), ()), {"dim": 0}),
    Sample(((2, 7), (3,), (2, 4)), {"dim": 1}, breaks="C1"),
)
ATEN.samples(
    slice_scatter,
    Sample(((3, 8), (3, 2)), {"dim": 1, "start": 3, "end": 5}),
    Sample(((8, 5), (3, 5)), {"dim": 0, "start": 1, "end": 8, "step": 3}),
)
ATEN.samples(select_scatter, Sample(((3, 8), (3,)), {"dim": 1, "index": -2}))
