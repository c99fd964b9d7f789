"""Writes to entries of one dimension: by concatenation if the places are known, else by comparison of positions."""

from __future__ import annotations

from math import nan

from spyre_mlir.ops.annotations import Lanes, np
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.index_matching import named, written
from spyre_mlir.ops.helpers.slicing import along, joined, moved, padded, part
from spyre_mlir.ops.native.views import TO_END
from spyre_mlir.ops.table import Sample, require
from spyre_mlir.ops.value import Value


def index_copy_shape(
    self: tuple[int, ...], index: tuple[int, ...], source: tuple[int, ...], *, dim: int
) -> tuple[int, ...]:
    """Shape of self, after a check of the other shapes."""
    at = dim % max(len(self), 1)
    expected = (*self[:at], index[0] if index else 1, *self[at + 1 :]) if self else ()
    require("C1", source == expected, f"source of shape {source}, expected {expected}")
    return self


def _index_copy_meaning(self: Lanes, index: Lanes, source: Lanes, *, dim: int) -> Lanes:
    out = np.moveaxis(self.copy().reshape(self.shape or (1,)), dim, 0)
    out[index.astype(np.int64).reshape(-1)] = np.moveaxis(source.reshape(source.shape or (1,)), dim, 0)
    return np.moveaxis(out, 0, dim).reshape(self.shape)


@ATEN.composed(aten=["index_copy"], promote=True, ulps=1, meaning=_index_copy_meaning, shape=index_copy_shape)
def index_copy(b: Build, self: Value, index: Value, source: Value, *, dim: int) -> Value:
    """`self` with the entries of `dim` that `index` names replaced by those of `source`, in order.

    A position that `index` names twice holds the later entry. A position outside `self` makes all entries of that
    position's source NaN, at least one of them in the result, or is passed over where numbers are whole: the device has
    no way to refuse it.

    Constraints:
        C1: source has the shape of self, with as many entries along dim as index.
    """
    return _copied(b, self, index, source, dim)


def _copied(b: Build, self: Value, index: Value, source: Value, dim: int) -> Value:
    if not self.shape:
        line, place, one = (x.view(1) for x in (self, index, source))
        return _copied(b, line, place, one, 0).view()
    shape, at = self.shape, dim % self.rank
    if not self.is_float:
        # Whole numbers and truth values know no NaN, and products round them.
        hits = named(b, index.view(-1), shape[at])
        return moved(written(b, moved(self, at, -1), hits, moved(source, at, -1)), -1, at)
    here, rows = placed_rows(b, index, source, shape[at], at)
    return along(here, len(shape), at).where(rows, self)


def placed_rows(b: Build, index: Value, source: Value, extent: int, at: int) -> tuple[Value, Value]:
    """Return which places of a dimension a vector of places names, and floats that are the entries of a source there.

    One entry of the source alone is every entry of the result. A place that is named twice has the later one.
    """
    places = b.call("arange.start_step", start=0, end=extent, step=1)
    number = b.cast(index, "f32")
    below, beyond = number.lt(0.0), number.ge(float(extent))
    outside = b.call("logical_or", below, beyond)
    if source.shape[at] == 1:
        one, wrong = number.view(1), outside.view(1)
        here = b.call("logical_or", places.eq(one), wrong)
        return here, wrong.view(*(1 for _ in source.shape)).where(nan, source)
    # Row p of the source goes to place index[p]: a product with a matrix of zeros and ones moves all of them.
    hits = places.unsqueeze(1).eq(number)
    ones = _named_again(b, number).where(0.0, b.cast(hits, like=source))
    ones = outside.where(nan, ones)
    return ones.amax(1).ne(0.0), _rows_moved(ones, source, at)


def _named_again(b: Build, number: Value) -> Value:
    """Whether each entry of a vector of places is named by a later entry too."""
    same = b.cast(number.unsqueeze(1).eq(number), "f32")
    # Row q, column p: q names the place of p, and comes later.
    return b.call("tril", same, diagonal=-1).amax(0).ne(0.0)


def _rows_moved(ones: Value, value: Value, at: int) -> Value:
    """The product of a matrix with a tensor along dimension `at`, which becomes the second last for it."""
    if value.rank == 1:
        return (ones @ value.unsqueeze(1)).squeeze(1)
    return (ones @ value.transpose(at, -2)).transpose(at, -2)


@ATEN.composed(aten=["slice_scatter"], promote=True, ulps=1)
def slice_scatter(
    b: Build, self: Value, src: Value, *, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Value:
    """`self` with a range of `dim` replaced by `src`."""
    low, high, _ = slice(start, end).indices(self.shape[dim])
    if step != 1:
        src, high = _among_others(b, self, src, dim, range(low, high, step)), max(low, high)
    return joined(b, [part(b, self, dim, 0, low), src, part(b, self, dim, max(low, high), TO_END)], dim)


def _among_others(b: Build, self: Value, src: Value, dim: int, places: range) -> Value:
    """The part of `self` from the first of some places on, every `step`-th element taken from `src`."""
    count, step, extent = len(places), places.step, len(places) * places.step
    own = part(b, self, dim, places.start, places.stop)
    at = dim % self.rank
    shape = self.shape
    own = padded(b, own, at, 0, max(0, extent - own.shape[at]))
    # Blocks of `step` entries, the first of each replaced.
    blocks = own.view(*shape[:at], count, step, *shape[at + 1 :])
    rest = part(b, blocks, at + 1, 1, TO_END)
    made = b.call("cat", [b.cast(src, like=self).unsqueeze(at + 1), rest], dim=at + 1)
    line = made.view(*shape[:at], extent, *shape[at + 1 :])
    return part(b, line, at, 0, len(range(places.start, places.stop)))


@ATEN.composed(aten=["select_scatter"], promote=True, ulps=1)
def select_scatter(b: Build, self: Value, src: Value, *, dim: int, index: int) -> Value:
    """`self` with one index of `dim` replaced by `src`."""
    at = index % self.shape[dim]
    before, one = part(b, self, dim, 0, at), src.unsqueeze(dim % self.rank)
    return joined(b, [before, one, part(b, self, dim, at + 1, TO_END)], dim)


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
