"""Elements in other places: reversed, rotated, repeated, in windows, on diagonals."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from spyre_mlir.ops.annotations import DType, Ints, Number
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.index_matching import chosen
from spyre_mlir.ops.helpers.slicing import joined, moved, part, permuted, reshaped, side_by_side, widened
from spyre_mlir.ops.ignored_arguments import MEMORY_FORMAT, NON_BLOCKING
from spyre_mlir.ops.table import Sample, require
from spyre_mlir.ops.value import Value

# Parts side by side, one copy each, up to this number; beyond, elements are selected by their places.
MOST_PARTS = 16


def by_places(b: Build, value: Value, places: Value, dim: int) -> Value:
    """The entries of `dim` that places name, all of them inside."""
    table = moved(value, dim, -1)
    line = reshaped(table, (-1, table.shape[-1]))
    hits = places.unsqueeze(1).eq(b.iota(value.shape[dim], places.element))
    out = chosen(b, hits, line, inside=True)
    return moved(reshaped(out, (*table.shape[:-1], places.shape[0])), -1, dim)


@ATEN.composed(aten=["stack"], promote=True, ulps=1)
def stack(b: Build, tensors: Sequence[Value], *, dim: int = 0) -> Value:
    """The tensors side by side along a new dimension.

    Constraints:
        C1: all shapes are equal.
    """
    shapes = [t.shape for t in tensors]
    require("C1", all(s == shapes[0] for s in shapes), f"shapes {shapes} differ")
    return side_by_side(b, tensors, dim)


@ATEN.composed(aten=["flip"], ulps=0)
def flip(b: Build, self: Value, *, dims: Ints) -> Value:
    """The entries of some dimensions in reverse order."""
    rank = self.rank
    for dim in sorted({d % rank for d in dims} if rank else ()):
        count = self.shape[dim]
        if count <= MOST_PARTS:
            self = joined(b, [part(b, self, dim, at, at + 1) for at in reversed(range(count))], dim)
        else:
            self = by_places(b, self, b.iota(count, "i32", start=count - 1, step=-1), dim)
    return self


@ATEN.composed(aten=["roll"], ulps=0)
def roll(b: Build, self: Value, *, shifts: Ints, dims: Ints = ()) -> Value:
    """The entries of some dimensions moved on; those beyond the end come back at the start."""
    if not dims:
        flat = reshaped(self, (-1,))
        return reshaped(b.call("roll", flat, shifts=shifts, dims=(0,)), self.shape)
    for shift, dim in zip(shifts, dims, strict=True):
        at, count = dim % self.rank, self.shape[dim]
        cut = -shift % count if count else 0
        if cut:
            self = joined(b, [part(b, self, at, cut, count), part(b, self, at, 0, cut)], at)
    return self


@ATEN.composed(aten=["repeat"], ulps=0)
def repeat(b: Build, self: Value, *, repeats: Ints) -> Value:
    """The tensor side by side with itself, so many times along each dimension."""
    shape = (1,) * (len(repeats) - self.rank) + self.shape
    if 0 in repeats:
        return b.full(tuple(e * r for e, r in zip(shape, repeats, strict=True)), 0, self.element)
    spread = tuple(x for e in shape for x in (1, e))
    wide = tuple(x for e, r in zip(shape, repeats, strict=True) for x in (r, e))
    out = widened(reshaped(self, spread), wide)
    return reshaped(out, tuple(e * r for e, r in zip(shape, repeats, strict=True)))


@ATEN.composed(aten=["repeat_interleave.self_int"], ulps=0)
def repeat_interleave(self: Value, *, repeats: int, dim: int | None = None, output_size: int | None = None) -> Value:
    """Every entry of `dim` so many times in a row; without `dim`, every element in order.

    Constraints:
        C1: output_size is the size that follows, unless it is absent.
    """
    value = reshaped(self, (-1,)) if dim is None else self
    shape = value.shape or (1,)
    at = (dim or 0) % len(shape)
    size = shape[at] * repeats
    require("C1", output_size in (None, size), f"output_size {output_size}, expected {size}")
    spread = reshaped(value, shape).unsqueeze(at + 1)
    wide = widened(spread, (*shape[: at + 1], repeats, *shape[at + 1 :]))
    return reshaped(wide, (*shape[:at], size, *shape[at + 1 :]))


@ATEN.composed(aten=["unfold"], ulps=0)
def unfold(b: Build, self: Value, *, dimension: int, size: int, step: int) -> Value:
    """Windows of so many entries, so many steps apart, along a new last dimension."""
    if not self.shape:
        return reshaped(self, (size,))
    at = dimension % self.rank
    shape, last = self.shape, self.rank
    count = (shape[at] - size) // step + 1
    if size == step:
        cut = part(b, self, at, 0, count * size)
        return moved(reshaped(cut, (*shape[:at], count, size, *shape[at + 1 :])), at + 1, last)
    if min(count, size) > MOST_PARTS:
        starts = b.iota(count, "i32", step=step).unsqueeze(1)
        places = reshaped(starts + b.iota(size, "i32"), (count * size,))
        wide = by_places(b, self, places, at)
        return moved(reshaped(wide, (*shape[:at], count, size, *shape[at + 1 :])), at + 1, last)
    if count <= size:
        windows = [part(b, self, at, n * step, n * step + size) for n in range(count)]
        return moved(side_by_side(b, windows, at), at + 1, last)
    entries = [part(b, self, at, n, n + step * (count - 1) + 1, step) for n in range(size)]
    return side_by_side(b, entries, last)


def _on_diagonal(b: Build, rows: int, columns: int, offset: int) -> Value:
    """[rows, columns]: whether an element lies on a diagonal."""
    return b.iota(rows, "i32", start=offset).unsqueeze(1).eq(b.iota(columns, "i32"))


def _pair_last(value: Value, dim1: int, dim2: int) -> Value:
    rank = value.rank
    order = (*(d for d in range(rank) if d not in (dim1 % rank, dim2 % rank)), dim1 % rank, dim2 % rank)
    return permuted(value, order)


@ATEN.composed(aten=["diagonal", "diagonal_copy"], ulps=0)
def diagonal(b: Build, self: Value, *, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Value:
    """The elements whose places along two dimensions differ by `offset`, along a new last dimension."""
    value = _pair_last(self, dim1, dim2)
    rows, columns = value.shape[-2:]
    top, count = max(0, -offset), min(rows + min(offset, 0), columns - max(offset, 0))
    if count <= 0:
        return b.full((*value.shape[:-2], 0), 0, self.element)
    # The square that holds the diagonal; in it, each row has one element of it.
    left = max(0, offset)
    value = part(b, part(b, value, value.rank - 2, top, top + count), value.rank - 1, left, left + count)
    if count == 1:
        return value.squeeze(-1)
    kept = _on_diagonal(b, count, count, 0).where(b.cast(value, "f16") if value.is_bool else value, 0)
    return b.cast(kept.sum(-1), like=self)


@ATEN.composed(aten=["diag_embed"], ulps=0)
def diag_embed(b: Build, self: Value, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Value:
    """The last dimension along a diagonal of two new ones; 0 elsewhere."""
    lead, count = self.shape[:-1], self.shape[-1]
    side = count + abs(offset)
    padded = b.call("constant_pad_nd", self, pad=(max(0, -offset), max(0, offset))) if offset else self
    column = padded.unsqueeze(-1)
    out = _on_diagonal(b, side, side, offset).where(column, False if self.is_bool else 0)
    return _pair_back(widened(out, (*lead, side, side)), dim1, dim2)


def _pair_back(value: Value, dim1: int, dim2: int) -> Value:
    """A value whose last two dimensions belong at two others."""
    rank = value.rank
    others = iter(range(rank - 2))
    places = {dim1 % rank: rank - 2, dim2 % rank: rank - 1}
    order = tuple(places[d] if d in places else next(others) for d in range(rank))
    return permuted(value, order)


@ATEN.composed(aten=["diagonal_scatter"], ulps=0)
def diagonal_scatter(b: Build, self: Value, src: Value, *, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Value:
    """`self` with a diagonal of two dimensions replaced by `src`."""
    value = _pair_last(self, dim1, dim2)
    rows, columns = value.shape[-2:]
    top, count = max(0, -offset), src.shape[-1]
    below = rows - top - count
    padded = b.call("constant_pad_nd", src, pad=(top, below)) if top or below else src
    column = padded.unsqueeze(-1)
    out = _on_diagonal(b, rows, columns, offset).where(column, value)
    return _pair_back(out, dim1, dim2)


@ATEN.composed(aten=["trace"])
def trace(b: Build, self: Value) -> Value:
    """The sum of the diagonal of a matrix."""
    line = b.call("diagonal", self)
    return (b.cast(line, "i64") if line.is_whole else line).sum(0)


@ATEN.composed(aten=["as_strided"], ulps=0)
def as_strided(b: Build, self: Value, *, size: Ints, stride: Ints, storage_offset: int | None = None) -> Value:
    """The elements that strides walk through a dense tensor, from an offset on."""
    flat = reshaped(self, (-1,))
    places = _walked(b, size, stride, storage_offset or 0)
    return reshaped(by_places(b, flat, places, 0), size)


def _walked(b: Build, size: Ints, stride: Ints, offset: int) -> Value:
    """The places that strides walk, in one dimension."""
    total: Value | None = None
    for dim, (extent, step) in enumerate(zip(size, stride, strict=True)):
        start = offset if dim == 0 else 0
        line = b.iota(extent, "i32", start=start, step=step) if step else b.full((extent,), start, "i32")
        line = reshaped(line, (extent, *(1,) * (len(size) - dim - 1)))
        total = line if total is None else total + line
    return b.full((1,), offset, "i32") if total is None else reshaped(widened(total, size), (prod(size),))


@ATEN.composed(aten=["as_strided_scatter"], ulps=0)
def as_strided_scatter(
    b: Build, self: Value, src: Value, *, size: Ints, stride: Ints, storage_offset: int | None = None
) -> Value:
    """`self`, dense, with the elements that strides walk replaced by those of `src`."""
    flat = reshaped(self, (-1,))
    places = b.cast(_walked(b, size, stride, storage_offset or 0), "i64")
    return reshaped(b.call("index_put", flat, [places], reshaped(src, (-1,))), self.shape)


@ATEN.composed(aten=["copy"], ulps=1, ignores=[NON_BLOCKING])
def copy(b: Build, self: Value, src: Value) -> Value:
    """`src` in the shape and the element type of `self`."""
    return widened(b.cast(src, like=self), self.shape)


def _filled(b: Build, shape: Ints, number: Value | Number, element: str) -> Value:
    if isinstance(number, Value):
        if number.number is None:
            return widened(b.cast(number, element), shape)
        number = number.number
    return b.full(tuple(shape), float(bool(number)) if element == "i1" else number, element)


@ATEN.composed(aten=["fill.Scalar", "fill.Tensor"], ulps=1)
def fill(b: Build, self: Value, value: Value) -> Value:
    """One number in the shape of `self`."""
    return _filled(b, self.shape, value, self.element)


@ATEN.composed(aten=["full_like"], ulps=1, ignores=[MEMORY_FORMAT])
def full_like(b: Build, self: Value, *, fill_value: Number, dtype: DType | None = None) -> Value:
    """One number in the shape of `self`."""
    return _filled(b, self.shape, fill_value, dtype or self.element)


@ATEN.composed(aten=["zeros_like", "empty_like"], ulps=0, ignores=[MEMORY_FORMAT])
def zeros_like(b: Build, self: Value, *, dtype: DType | None = None) -> Value:
    """Zeros in the shape of `self`; uninitialised tensors get zeros too."""
    return b.full(self.shape, 0, dtype or self.element)


@ATEN.composed(aten=["ones_like"], ulps=0, ignores=[MEMORY_FORMAT])
def ones_like(b: Build, self: Value, *, dtype: DType | None = None) -> Value:
    """1 in the shape of `self`."""
    return b.full(self.shape, 1, dtype or self.element)


@ATEN.composed(aten=["new_full"], ulps=1)
def new_full(b: Build, self: Value, *, size: Ints, fill_value: Number, dtype: DType | None = None) -> Value:
    """One number everywhere, in the element type of `self`."""
    return _filled(b, size, fill_value, dtype or self.element)


@ATEN.composed(aten=["new_zeros", "new_empty"], ulps=0)
def new_zeros(b: Build, self: Value, *, size: Ints, dtype: DType | None = None) -> Value:
    """Zeros in the element type of `self`; uninitialised tensors get zeros too."""
    return b.full(tuple(size), 0, dtype or self.element)


@ATEN.composed(aten=["new_ones"], ulps=0)
def new_ones(b: Build, self: Value, *, size: Ints, dtype: DType | None = None) -> Value:
    """1 everywhere, in the element type of `self`."""
    return b.full(tuple(size), 1, dtype or self.element)


_SQUARE = Sample(((5, 7),))
ATEN.samples(stack, Sample((((3, 5), (3, 5)),), {"dim": 1}), Sample((((3, 5), (4, 5)),), breaks="C1"))
ATEN.samples(flip, Sample(((3, 70),), {"dims": (0, -1)}))
ATEN.samples(roll, Sample(((5, 7),), {"shifts": (1, -2), "dims": (0, 1)}), Sample(((5, 7),), {"shifts": (3,)}))
ATEN.samples(repeat, Sample(((3, 5),), {"repeats": (2, 1, 3)}))
ATEN.samples(
    repeat_interleave,
    Sample(((3, 5),), {"repeats": 2, "dim": -1}),
    Sample(((3, 5),), {"repeats": 3}),
    Sample(((3, 5),), {"repeats": 2, "output_size": 31}, breaks="C1"),
)
ATEN.samples(
    unfold,
    Sample(((9, 5),), {"dimension": 0, "size": 3, "step": 2}),
    Sample(((3, 70),), {"dimension": 1, "size": 3, "step": 1}),
    Sample(((3, 70),), {"dimension": -1, "size": 20, "step": 20}),
)
ATEN.samples(diagonal, _SQUARE, Sample(((4, 6, 5),), {"offset": -1, "dim1": 2, "dim2": 0}))
ATEN.samples(diag_embed, _SQUARE, Sample(((2, 5),), {"offset": -1, "dim1": 0, "dim2": 2}))
ATEN.samples(
    diagonal_scatter,
    Sample(((5, 7), (5,)), {"offset": 1}),
    Sample(((5, 7), (3,)), {"offset": -2}),
    Sample(((4, 5, 3), (5, 3)), {"offset": 1, "dim1": -1, "dim2": 0}),
)
ATEN.samples(trace, _SQUARE)
ATEN.samples(as_strided, Sample(((3, 8),), {"size": (3, 2), "stride": (2, 1), "storage_offset": 1}))
ATEN.samples(as_strided_scatter, Sample(((3, 8), (3, 2)), {"size": (3, 2), "stride": (8, 1), "storage_offset": 2}))
ATEN.samples(copy, Sample(((3, 5), (5,))))
ATEN.samples(fill, Sample(((3, 5), ())))
ATEN.samples(full_like, Sample(((3, 5),), {"fill_value": 0.5}))
for _entry in (zeros_like, ones_like):
    ATEN.samples(_entry, _SQUARE)
ATEN.samples(new_full, Sample(((3, 5),), {"size": (2, 4), "fill_value": 0.5}))
for _entry in (new_zeros, new_ones):
    ATEN.samples(_entry, Sample(((3, 5),), {"size": (2, 4)}))
