"""Choosing and placing by position: every index is compared with every place it may name.

The device gathers whole rows of tables only, and does not scatter. What is left is dense: a matrix of truth values
says which index names which place, and elements are selected by it and folded. A selection, unlike a product with
zeros and ones, keeps integers exact and stops infinities and NaN of other places.

Decision: docs/decisions/0063-positions-are-compared.md
"""

from __future__ import annotations

from math import nan, prod

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.ops.annotations import INF
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.slicing import joined, part, reshaped
from spyre_mlir.ops.value import Value

# Comparisons above this number are dearer on the device than the whole operation on the host.
MOST_COMPARISONS = 1 << 26
# Selections up to this number stay selections; beyond, floats go through a product, which moves less.
MOST_SELECTED = 1 << 16
WHOLE = "i32"  # the element type of places: whole numbers that the device compares exactly


def from_end(index: Value, count: int) -> Value:
    """Places of `count`, negative ones counted from the end."""
    return index.lt(0).where(index + count, index)


def is_inside(b: Build, index: Value, count: int) -> bool:
    """Return whether every index is known to name one of `count` places, none counted from the end."""
    known = b.bounds(index)
    return known is not None and known[0] >= 0 and known[1] < count


def named(b: Build, index: Value, count: int) -> Value:
    """[…, m, n]: 1 where the m-th index names place n.

    Raises:
        UnsupportedError: it takes more than `MOST_COMPARISONS` comparisons.
    """
    total = prod(index.shape) * count
    if total > MOST_COMPARISONS:
        raise UnsupportedError(f"{total} comparisons of indices with places", hint="use fewer indices at a time")
    places = b.iota(count, index.element)
    return index.unsqueeze(-1).eq(places)


def all_named(b: Build, indices: list[Value], extents: list[int]) -> Value:
    """[m, n]: 1 where the m-th indices together name place n of the extents' row-major product."""
    hits = named(b, indices[0], extents[0])
    for index, extent in zip(indices[1:], extents[1:], strict=True):
        inner = named(b, index, extent).unsqueeze(1)
        rows, places = hits.shape
        hits = reshaped(hits.unsqueeze(2).where(inner, False), (rows, places * extent))
    return hits


def chosen(b: Build, hits: Value, table: Value, *, inside: bool = False) -> Value:
    """[…, m]: the element of table […, n] that the m-th index names; NaN for floats that none is named of.

    Args:
        b: what builds.
        hits: which index names which place.
        table: the elements.
        inside: whether every index is known to name a place.
    """
    if table.is_bool:
        return b.cast(chosen(b, hits, b.cast(table, "f16"), inside=inside), "i1")
    total = folded(b, hits, table, transposed=True)
    if inside or table.is_whole:
        return total
    # An index outside the table names nothing: 0 over 0, not a 0 that looks like an element.
    return total / b.cast(hits, like=table).sum(-1)


def folded(b: Build, hits: Value, values: Value, *, transposed: bool = False) -> Value:
    """[…, n]: the sum of the values […, m] whose index names place n; transposed, [..., m] of values […, n]."""
    axis = -1 if transposed else -2
    shape, several = hits.shape, values.shape
    alike = len(shape) > 2 and shape[-3] == 1 < several[-2]  # for all columns of a batch
    if (alike or len(shape) == 2) and not values.is_whole and prod(shape[-2:]) * prod(several[:-1]) > MOST_SELECTED:
        ones = b.cast(hits.squeeze(-3) if alike else hits, like=values)
        if alike:  # columns lie in the lanes, and stay there
            summed = _summed(b, values.transpose(-2, -1), ones if transposed else ones.transpose(-2, -1), lead=True)
            return summed.transpose(-2, -1)
        return _summed(b, values, ones.transpose(-2, -1) if transposed else ones)
    return hits.where(values.unsqueeze(-1 if axis == -2 else -2), 0).sum(axis)


def _summed(b: Build, values: Value, ones: Value, *, lead: bool = False) -> Value:
    """A product with zeros and ones. What is not finite goes beside it: 0 times infinity is no 0.

    Args:
        b: what builds.
        values: […, m].
        ones: […, m, n]; or […, n, m] in front of values […, m, columns].
        lead: whether zeros and ones stand in front.
    """

    def product(numbers: Value) -> Value:
        return ones @ numbers if lead else numbers @ ones

    number = values.eq(values)
    up, down = (number.where(values.eq(end), True) for end in (INF, -INF))
    finite = up.where(0.0, down.where(0.0, values))
    total = product(finite)
    rises, falls = (product(b.cast(end, like=values)).gt(0.0) for end in (up, down))
    out = falls.where(-INF, total)
    both = falls.where(nan, b.full((), INF, values.element))
    return rises.where(both, out)


def covered(b: Build, hits: Value) -> Value:
    """[…, n]: 1 where an index names place n."""
    return b.cast(hits, "f32").amax(-2).ne(0.0)


def written(b: Build, self: Value, hits: Value, values: Value) -> Value:
    """Self […, n] with the values […, m] at the places their indices name, later ones over earlier ones."""
    if self.is_bool:
        return b.cast(written(b, b.cast(self, "f16"), hits, b.cast(values, "f16")), "i1")
    count = hits.shape[-2]
    if count == 0:
        return self
    if count == 1:
        return hits.squeeze(-2).where(values, self)
    turn = b.iota(count, WHOLE, start=1).unsqueeze(1)
    last = hits.where(turn, 0).amax(-2)
    winners = turn.eq(last.unsqueeze(-2))
    return last.gt(0).where(folded(b, winners, values), self)


def multiplied(b: Build, value: Value, dim: int) -> Value:
    """The product over one dimension, by halves."""
    while (count := value.shape[dim]) > 1:
        half = count // 2
        product = part(b, value, dim, 0, half) * part(b, value, dim, half, 2 * half)
        value = joined(b, [product, part(b, value, dim, 2 * half, count)], dim)
    return value.squeeze(dim)
