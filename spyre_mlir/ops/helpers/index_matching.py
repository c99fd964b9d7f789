"""Choosing and placing by position: every index is compared with every place it may name.

The device gathers whole rows of tables only, and does not scatter. What is left is dense: a matrix of truth values
says which index names which place, and elements are selected by it and folded. A selection, unlike a product with
zeros and ones, keeps integers exact and stops infinities and NaN of other places.
"""

from __future__ import annotations

from math import nan, prod
from typing import Any

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.ops.annotations import INF
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.slicing import joined, part, reshaped

# Comparisons above this number are dearer on the device than the whole operation on the host.
MOST_COMPARISONS = 1 << 26
# Selections up to this number stay selections; beyond, floats go through a product, which moves less.
MOST_SELECTED = 1 << 16
WHOLE = "i32"  # the element type of places: whole numbers that the device compares exactly


def is_whole(b: Build, value: Any) -> bool:
    """Whether a value holds integers."""
    return b.element(value).startswith(("i", "ui", "si")) and not b.is_bool(value)


def from_end(b: Build, index: Any, count: int) -> Any:
    """Places of `count`, negative ones counted from the end."""
    below = b.call("lt.Scalar", index, 0)
    return b.call("where.self", below, b.call("add.Tensor", index, count), index)


def named(b: Build, index: Any, count: int) -> Any:
    """[…, m, n]: whether the m-th index names place n."""
    total = prod(b.shape(index)) * count
    if total > MOST_COMPARISONS:
        raise UnsupportedError(f"{total} comparisons of indices with places", hint="use fewer indices at a time")
    places = b.iota(count, b.element(index))
    return b.call("eq.Tensor", b.call("unsqueeze", index, dim=-1), places)


def all_named(b: Build, indices: list[Any], extents: list[int]) -> Any:
    """[m, n]: whether the m-th indices together name place n of the extents' row-major product."""
    hits = named(b, indices[0], extents[0])
    for index, extent in zip(indices[1:], extents[1:], strict=True):
        inner = b.call("unsqueeze", named(b, index, extent), dim=1)
        rows, places = b.shape(hits)
        hits = b.call("where.self", b.call("unsqueeze", hits, dim=2), inner, False)
        hits = reshaped(b, hits, (rows, places * extent))
    return hits


def chosen(b: Build, hits: Any, table: Any, *, inside: bool = False) -> Any:
    """[…, m]: the element of table […, n] that the m-th index names; NaN for floats that none is named of.

    Args:
        b: what builds.
        hits: which index names which place.
        table: the elements.
        inside: whether every index is known to name a place.
    """
    if b.is_bool(table):
        return b.cast(chosen(b, hits, b.cast(table, "f16"), inside=inside), "i1")
    total = folded(b, hits, table, transposed=True)
    if inside or is_whole(b, table):
        return total
    # An index outside the table names nothing: 0 over 0, not a 0 that looks like an element.
    return b.call("div.Tensor", total, b.call("sum.dim_IntList", b.cast(hits, like=table), dim=(-1,)))


def folded(b: Build, hits: Any, values: Any, *, transposed: bool = False) -> Any:
    """[…, n]: the sum of the values […, m] whose index names place n; transposed, [..., m] of values […, n]."""
    axis = -1 if transposed else -2
    shape, several = b.shape(hits), b.shape(values)
    if len(shape) == 2 and not is_whole(b, values) and prod(shape) * prod(several[:-1]) > MOST_SELECTED:
        ones = b.cast(hits, like=values)
        return _summed(b, values, b.call("transpose.int", ones, dim0=0, dim1=1) if transposed else ones)
    kept = b.call("where.self", hits, b.call("unsqueeze", values, dim=-1 if axis == -2 else -2), 0)
    return b.call("sum.dim_IntList", kept, dim=(axis,))


def _summed(b: Build, values: Any, ones: Any) -> Any:
    """A product with zeros and ones. What is not finite goes beside it: 0 times infinity is no 0."""
    number = b.call("eq.Tensor", values, values)
    up, down = (b.call("where.self", number, b.call("eq.Scalar", values, end), True) for end in (INF, -INF))
    finite = b.call("where.self", up, 0.0, b.call("where.self", down, 0.0, values))
    total = b.call("matmul", finite, ones)
    rises, falls = (b.call("gt.Scalar", b.call("matmul", b.cast(end, like=values), ones), 0.0) for end in (up, down))
    out = b.call("where.self", falls, -INF, total)
    both = b.call("where.self", falls, nan, b.full((), INF, b.element(values)))
    return b.call("where.self", rises, both, out)


def covered(b: Build, hits: Any) -> Any:
    """[…, n]: whether any index names place n."""
    return b.call("ne.Scalar", b.call("amax", b.cast(hits, "f32"), dim=(-2,)), 0.0)


def written(b: Build, self: Any, hits: Any, values: Any) -> Any:
    """Self […, n] with the values […, m] at the places their indices name, later ones over earlier ones."""
    if b.is_bool(self):
        return b.cast(written(b, b.cast(self, "f16"), hits, b.cast(values, "f16")), "i1")
    count = b.shape(hits)[-2]
    if count == 0:
        return self
    if count == 1:
        return b.call("where.self", b.call("squeeze.dim", hits, dim=(-2,)), values, self)
    turn = b.call("unsqueeze", b.iota(count, WHOLE, start=1), dim=1)
    last = b.call("amax", b.call("where.self", hits, turn, 0), dim=(-2,))
    winners = b.call("eq.Tensor", turn, b.call("unsqueeze", last, dim=-2))
    return b.call("where.self", b.call("gt.Scalar", last, 0), folded(b, winners, values), self)


def multiplied(b: Build, value: Any, dim: int) -> Any:
    """The product over one dimension, by halves."""
    while (count := b.shape(value)[dim]) > 1:
        half = count // 2
        product = b.call("mul.Tensor", part(b, value, dim, 0, half), part(b, value, dim, half, 2 * half))
        value = joined(b, [product, part(b, value, dim, 2 * half, count)], dim)
    return b.call("squeeze.dim", value, dim=(dim,))
