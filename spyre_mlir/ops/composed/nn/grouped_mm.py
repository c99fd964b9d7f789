"""Products of rows with the matrix of their group, as mixtures of experts compute them."""

from __future__ import annotations

import operator
from functools import reduce

from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.slicing import part
from spyre_mlir.ops.value import Value

# Elements of products that are kept until they are added up. Cores reach parts of 1 GiB of DL16; of more, groups whose
# products take at most half of that are added up first.
_MOST_PRODUCTS = 1 << 29

GROUPED_MM = "transformers::grouped_mm_fallback"


@ATEN.composed(aten=[GROUPED_MM], ulps=16)
def grouped_mm(b: Build, input: Value, weight: Value, offs: Value) -> Value:
    """Rows up to `offs[0]` times the first matrix of `weight`, those up to `offs[1]` times the second, and so on.

    Rows behind the last are 0. Every row meets every matrix, and what is not its own is dropped: which rows a group has
    is data, and the device has no loop whose bounds are data.
    """
    rows, groups = input.shape[0], weight.shape[0]
    ends = offs.view(groups, 1, 1)
    place = b.iota(rows, offs.element).view(1, rows, 1)
    inside = place.lt(ends)
    if groups > 1:
        # The groups follow one another: a row is in the first whose end is behind it.
        first = b.full((1, rows, 1), 0, offs.element)
        starts = b.call("slice.Tensor", ends, dim=0, end=groups - 1).expand(groups - 1, rows, 1)
        inside = b.call("logical_and", inside, place.ge(b.call("cat", [first, starts], dim=0)))
    together = groups_at_once(groups, rows * weight.shape[2])
    sums = [_sum(b, input, weight, inside, g, g + together) for g in range(0, groups, together)]
    return reduce(operator.add, sums)


def groups_at_once(groups: int, elements: int) -> int:
    """Return how many groups, of so many elements each, are added up at once: equally many every time."""
    if groups * elements <= _MOST_PRODUCTS:
        return groups
    return max(n for n in range(1, groups + 1) if groups % n == 0 and (n == 1 or n * elements <= _MOST_PRODUCTS // 2))


def _sum(b: Build, input: Value, weight: Value, inside: Value, first: int, end: int) -> Value:
    """The products of all rows with some groups, each kept where its row is in the group."""
    weight, inside = (part(b, value, 0, first, end) for value in (weight, inside))
    rows, width = input.shape
    everywhere = input.view(1, rows, width).expand(weight.shape[0], rows, width)
    return inside.where(b.call("bmm", everywhere, weight), 0.0).sum(0)
