"""Writes of many elements along long rows, at places that index tensors name; of several for one place the last stays.

Every index compared with every place is a square larger than all scratchpads. Here indices are compared with later
ones, block by block, which says what is written over, and what stays goes to its place by a product.

Decision: docs/decisions/0238-long-rows-are-written-in-blocks.md
"""

from __future__ import annotations

from math import prod

from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.placing import BLOCK, DIGIT, placed
from spyre_mlir.ops.helpers.slicing import joined, part, reshaped
from spyre_mlir.ops.value import Value

# Comparisons of indices with places above which rows are long, and of indices with each other that are made at most.
LONG, MOST = 2**23, 2**26
NOWHERE = -1


def is_long(index: Value, count: int) -> bool:
    """Return whether indices […, m] of `count` places are compared with each other rather than with all places."""
    extent = index.shape[-1]
    return prod(index.shape) * count > LONG and extent > BLOCK and prod(index.shape) * extent <= MOST


def long_written(b: Build, self: Value, index: Value, values: Value) -> Value:
    """Self […, n] with the values […, m] at the places that the index names, later ones over earlier ones."""
    if self.is_bool:
        return b.cast(long_written(b, b.cast(self, "f16"), index, b.cast(values, "f16")), "i1")
    extent, shape = index.shape[-1], self.shape
    lines, own, given = (reshaped(v, (-1, v.shape[-1])) for v in (index, self, values))
    places = _last_of_each(b, lines)
    ones = b.full((1, 1), 1.0, "f16").expand(1, extent)
    out, (written,) = placed(b, given, [ones], places, shape[-1])
    return reshaped(written.gt(0.0).where(out, own), shape)


def _last_of_each(b: Build, index: Value) -> Value:
    """[rows, m]: the indices, or nowhere if a later one is the same."""
    rows, extent = index.shape
    count = -(-extent // BLOCK)
    size = -(-extent // (count * DIGIT)) * DIGIT
    missing = count * size - extent
    filled = index
    if missing:
        filled = joined(b, [index, b.full((1, 1), NOWHERE, index.element).expand(rows, missing)], 1)
    blocks = reshaped(filled, (rows, count, size))
    own, other = blocks.unsqueeze(3), blocks.unsqueeze(2)
    place = b.iota(size, "i64")
    last = own.eq(other).where(place, 0).amax(3)
    counts = b.cast(last.gt(place), "i64")
    found = list[Value]()
    for at in range(count - 1):
        same = part(b, own, 1, at, at + 1).eq(part(b, other, 1, at + 1, count))
        found.append(b.cast(same, "i64").sum(3).sum(1, keepdim=True))
    none = b.full((1, 1, 1), 0, "i64").expand(rows, 1, size)
    repeated = part(b, reshaped(counts + joined(b, [*found, none], 1), (rows, count * size)), 1, 0, extent)
    return repeated.gt(0).where(NOWHERE, index)
