"""Elements in other places: reversed, rotated, repeated, in windows, on diagonals."""

from __future__ import annotations

from math import prod
from typing import Any

from spyre_mlir.ops.annotations import DType, Ints, Lanes, LanesList, Number
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.index_matching import chosen, is_whole
from spyre_mlir.ops.helpers.slicing import joined, moved, part, permuted, reshaped, side_by_side, widened
from spyre_mlir.ops.table import Sample, require

# Parts side by side, one copy each, up to this number; beyond, elements are selected by their places.
MOST_PARTS = 16


def by_places(b: Build, value: Any, places: Any, dim: int) -> Any:
    """The entries of `dim` that places name, all of them inside."""
    table = moved(b, value, dim, -1)
    line = reshaped(b, table, (-1, b.shape(table)[-1]))
    hits = b.call("eq.Tensor", b.call("unsqueeze", places, dim=1), b.iota(b.shape(value)[dim], b.element(places)))
    out = chosen(b, hits, line, inside=True)
    return moved(b, reshaped(b, out, (*b.shape(table)[:-1], b.shape(places)[0])), -1, dim)


@ATEN.composed(aten=["stack"], promote=True, ulps=1)
def stack(b: Build, tensors: LanesList, *, dim: int = 0) -> Any:
    """The tensors side by side along a new dimension.

    Constraints:
        C1: all shapes are equal.
    """
    shapes = [b.shape(t) for t in tensors]
    require("C1", all(s == shapes[0] for s in shapes), f"shapes {shapes} differ")
    return side_by_side(b, tensors, dim)


@ATEN.composed(aten=["flip"], ulps=0)
def flip(b: Build, self: Lanes, *, dims: Ints) -> Any:
    """The entries of some dimensions in reverse order."""
    rank = len(b.shape(self))
    for dim in sorted({d % rank for d in dims} if rank else ()):
        count = b.shape(self)[dim]
        if count <= MOST_PARTS:
            self = joined(b, [part(b, self, dim, at, at + 1) for at in reversed(range(count))], dim)
        else:
            self = by_places(b, self, b.iota(count, "i32", start=count - 1, step=-1), dim)
    return self


@ATEN.composed(aten=["roll"], ulps=0)
def roll(b: Build, self: Lanes, *, shifts: Ints, dims: Ints = ()) -> Any:
    """The entries of some dimensions moved on; those beyond the end come back at the start."""
    if not dims:
        flat = reshaped(b, self, (-1,))
        return reshaped(b, b.call("roll", flat, shifts=shifts, dims=(0,)), b.shape(self))
    for shift, dim in zip(shifts, dims, strict=True):
        at, count = dim % len(b.shape(self)), b.shape(self)[dim]
        cut = -shift % count if count else 0
        if cut:
            self = joined(b, [part(b, self, at, cut, count), part(b, self, at, 0, cut)], at)
    return self


@ATEN.composed(aten=["repeat"], ulps=0)
def repeat(b: Build, self: Lanes, *, repeats: Ints) -> Any:
    """The tensor side by side with itself, so many times along each dimension."""
    shape = (1,) * (len(repeats) - len(b.shape(self))) + b.shape(self)
    if 0 in repeats:
        return b.full(tuple(e * r for e, r in zip(shape, repeats, strict=True)), 0, b.element(self))
    spread = tuple(x for e in shape for x in (1, e))
    wide = tuple(x for e, r in zip(shape, repeats, strict=True) for x in (r, e))
    out = widened(b, reshaped(b, self, spread), wide)
    return reshaped(b, out, tuple(e * r for e, r in zip(shape, repeats, strict=True)))


@ATEN.composed(aten=["repeat_interleave.self_int"], ulps=0)
def repeat_interleave(
    b: Build, self: Lanes, *, repeats: int, dim: int | None = None, output_size: int | None = None
) -> Any:
    """Every entry of `dim` so many times in a row; without `dim`, every element in order."""
    value = reshaped(b, self, (-1,)) if dim is None else self
    shape = b.shape(value) or (1,)
    at = (dim or 0) % len(shape)
    spread = b.call("unsqueeze", reshaped(b, value, shape), dim=at + 1)
    wide = widened(b, spread, (*shape[: at + 1], repeats, *shape[at + 1 :]))
    return reshaped(b, wide, (*shape[:at], shape[at] * repeats, *shape[at + 1 :]))


@ATEN.composed(aten=["unfold"], ulps=0)
def unfold(b: Build, self: Lanes, *, dimension: int, size: int, step: int) -> Any:
    """Windows of so many entries, so many steps apart, along a new last dimension."""
    if not b.shape(self):
        return reshaped(b, self, (size,))
    at = dimension % len(b.shape(self))
    count = (b.shape(self)[at] - size) // step + 1
    last = len(b.shape(self))
    if size == step:
        shape = b.shape(self)
        cut = part(b, self, at, 0, count * size)
        return moved(b, reshaped(b, cut, (*shape[:at], count, size, *shape[at + 1 :])), at + 1, last)
    if min(count, size) > MOST_PARTS:
        starts = b.call("unsqueeze", b.iota(count, "i32", step=step), dim=1)
        places = reshaped(b, b.call("add.Tensor", starts, b.iota(size, "i32")), (count * size,))
        wide, shape = by_places(b, self, places, at), b.shape(self)
        return moved(b, reshaped(b, wide, (*shape[:at], count, size, *shape[at + 1 :])), at + 1, last)
    if count <= size:
        windows = [part(b, self, at, n * step, n * step + size) for n in range(count)]
        return moved(b, side_by_side(b, windows, at), at + 1, last)
    entries = [part(b, self, at, n, n + step * (count - 1) + 1, step) for n in range(size)]
    return side_by_side(b, entries, last)


def _on_diagonal(b: Build, rows: int, columns: int, offset: int) -> Any:
    """[rows, columns]: whether an element lies on a diagonal."""
    row = b.call("unsqueeze", b.iota(rows, "i32", start=offset), dim=1)
    return b.call("eq.Tensor", row, b.iota(columns, "i32"))


def _pair_last(b: Build, value: Any, dim1: int, dim2: int) -> Any:
    rank = len(b.shape(value))
    order = (*(d for d in range(rank) if d not in (dim1 % rank, dim2 % rank)), dim1 % rank, dim2 % rank)
    return permuted(b, value, order)


@ATEN.composed(aten=["diagonal", "diagonal_copy"], ulps=0)
def diagonal(b: Build, self: Lanes, *, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """The elements whose places along two dimensions differ by `offset`, along a new last dimension."""
    value = _pair_last(b, self, dim1, dim2)
    rows, columns = b.shape(value)[-2:]
    top, count = max(0, -offset), min(rows + min(offset, 0), columns - max(offset, 0))
    if count <= 0:
        return b.full((*b.shape(value)[:-2], 0), 0, b.element(self))
    # The square that holds the diagonal; in it, each row has one element of it.
    value = part(
        b,
        part(b, value, len(b.shape(value)) - 2, top, top + count),
        len(b.shape(value)) - 1,
        max(0, offset),
        max(0, offset) + count,
    )
    if count == 1:
        return b.call("squeeze.dim", value, dim=(-1,))
    kept = b.call(
        "where.self", _on_diagonal(b, count, count, 0), b.cast(value, "f16") if b.is_bool(value) else value, 0
    )
    return b.cast(b.call("sum.dim_IntList", kept, dim=(-1,)), like=self)


@ATEN.composed(aten=["diag_embed"], ulps=0)
def diag_embed(b: Build, self: Lanes, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """The last dimension along a diagonal of two new ones; 0 elsewhere."""
    lead, count = b.shape(self)[:-1], b.shape(self)[-1]
    side = count + abs(offset)
    padded = b.call("constant_pad_nd", self, pad=(max(0, -offset), max(0, offset))) if offset else self
    column = b.call("unsqueeze", padded, dim=-1)
    out = b.call("where.self", _on_diagonal(b, side, side, offset), column, False if b.is_bool(self) else 0)
    return _pair_back(b, widened(b, out, (*lead, side, side)), dim1, dim2)


def _pair_back(b: Build, value: Any, dim1: int, dim2: int) -> Any:
    """A value whose last two dimensions belong at two others."""
    rank = len(b.shape(value))
    others = iter(range(rank - 2))
    places = {dim1 % rank: rank - 2, dim2 % rank: rank - 1}
    order = tuple(places[d] if d in places else next(others) for d in range(rank))
    return permuted(b, value, order)


@ATEN.composed(aten=["diagonal_scatter"], ulps=0)
def diagonal_scatter(b: Build, self: Lanes, src: Lanes, *, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """`self` with a diagonal of two dimensions replaced by `src`."""
    value = _pair_last(b, self, dim1, dim2)
    rows, columns = b.shape(value)[-2:]
    top, count = max(0, -offset), b.shape(src)[-1]
    below = rows - top - count
    padded = b.call("constant_pad_nd", src, pad=(top, below)) if top or below else src
    column = b.call("unsqueeze", padded, dim=-1)
    out = b.call("where.self", _on_diagonal(b, rows, columns, offset), column, value)
    return _pair_back(b, out, dim1, dim2)


@ATEN.composed(aten=["trace"])
def trace(b: Build, self: Lanes) -> Any:
    """The sum of the diagonal of a matrix."""
    line = b.call("diagonal", self)
    return b.call("sum.dim_IntList", b.cast(line, "i64") if is_whole(b, line) else line, dim=(0,))


@ATEN.composed(aten=["as_strided"], ulps=0)
def as_strided(b: Build, self: Lanes, *, size: Ints, stride: Ints, storage_offset: int | None = None) -> Any:
    """The elements that strides walk through a dense tensor, from an offset on."""
    flat = reshaped(b, self, (-1,))
    places = _walked(b, size, stride, storage_offset or 0)
    return reshaped(b, by_places(b, flat, places, 0), size)


def _walked(b: Build, size: Ints, stride: Ints, offset: int) -> Any:
    """The places that strides walk, in one dimension."""
    total: Any = None
    for dim, (extent, step) in enumerate(zip(size, stride, strict=True)):
        line = (
            b.iota(extent, "i32", start=offset if dim == 0 else 0, step=step)
            if step
            else b.full((extent,), offset if dim == 0 else 0, "i32")
        )
        line = reshaped(b, line, (extent, *(1,) * (len(size) - dim - 1)))
        total = line if total is None else b.call("add.Tensor", total, line)
    return b.full((1,), offset, "i32") if total is None else reshaped(b, widened(b, total, size), (prod(size),))


@ATEN.composed(aten=["as_strided_scatter"], ulps=0)
def as_strided_scatter(
    b: Build, self: Lanes, src: Lanes, *, size: Ints, stride: Ints, storage_offset: int | None = None
) -> Any:
    """`self`, dense, with the elements that strides walk replaced by those of `src`."""
    flat = reshaped(b, self, (-1,))
    places = b.cast(_walked(b, size, stride, storage_offset or 0), "i64")
    return reshaped(b, b.call("index_put", flat, [places], reshaped(b, src, (-1,))), b.shape(self))


@ATEN.composed(aten=["copy"], ulps=1)
def copy(b: Build, self: Lanes, src: Lanes, *, non_blocking: bool = False) -> Any:
    """`src` in the shape and the element type of `self`."""
    return widened(b, b.cast(src, like=self), b.shape(self))


def _filled(b: Build, shape: Ints, number: Any, element: str) -> Any:
    if not isinstance(number, int | float):
        return widened(b, b.cast(number, element), shape)
    return b.full(tuple(shape), float(bool(number)) if element == "i1" else number, element)


@ATEN.composed(aten=["fill.Scalar", "fill.Tensor"], ulps=1)
def fill(b: Build, self: Lanes, value: Lanes) -> Any:
    """One number in the shape of `self`."""
    return _filled(b, b.shape(self), value, b.element(self))


@ATEN.composed(aten=["full_like"], ulps=1)
def full_like(
    b: Build, self: Lanes, *, fill_value: Number, dtype: DType | None = None, memory_format: str | None = None
) -> Any:
    """One number in the shape of `self`."""
    return _filled(b, b.shape(self), fill_value, dtype or b.element(self))


@ATEN.composed(aten=["zeros_like", "empty_like"], ulps=0)
def zeros_like(b: Build, self: Lanes, *, dtype: DType | None = None, memory_format: str | None = None) -> Any:
    """0 in the shape of `self`; what is empty may hold that too."""
    return b.full(b.shape(self), 0, dtype or b.element(self))


@ATEN.composed(aten=["ones_like"], ulps=0)
def ones_like(b: Build, self: Lanes, *, dtype: DType | None = None, memory_format: str | None = None) -> Any:
    """1 in the shape of `self`."""
    return b.full(b.shape(self), 1, dtype or b.element(self))


@ATEN.composed(aten=["new_full"], ulps=1)
def new_full(b: Build, self: Lanes, *, size: Ints, fill_value: Number, dtype: DType | None = None) -> Any:
    """One number everywhere, in the element type of `self`."""
    return _filled(b, size, fill_value, dtype or b.element(self))


@ATEN.composed(aten=["new_zeros", "new_empty"], ulps=0)
def new_zeros(b: Build, self: Lanes, *, size: Ints, dtype: DType | None = None) -> Any:
    """0 everywhere, in the element type of `self`; what is empty may hold that too."""
    return b.full(tuple(size), 0, dtype or b.element(self))


@ATEN.composed(aten=["new_ones"], ulps=0)
def new_ones(b: Build, self: Lanes, *, size: Ints, dtype: DType | None = None) -> Any:
    """1 everywhere, in the element type of `self`."""
    return b.full(tuple(size), 1, dtype or b.element(self))


_SQUARE = Sample(((5, 7),))
ATEN.samples(stack, Sample((((3, 5), (3, 5)),), {"dim": 1}), Sample((((3, 5), (4, 5)),), breaks="C1"))
ATEN.samples(flip, Sample(((3, 70),), {"dims": (0, -1)}))
ATEN.samples(roll, Sample(((5, 7),), {"shifts": (1, -2), "dims": (0, 1)}), Sample(((5, 7),), {"shifts": (3,)}))
ATEN.samples(repeat, Sample(((3, 5),), {"repeats": (2, 1, 3)}))
ATEN.samples(repeat_interleave, Sample(((3, 5),), {"repeats": 2, "dim": -1}), Sample(((3, 5),), {"repeats": 3}))
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
