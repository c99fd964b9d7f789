"""Products of rows with the matrix of their group, as mixtures of experts compute them."""

from __future__ import annotations

from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.value import Value


@ATEN.composed(aten=["transformers::grouped_mm_fallback"], ulps=16)
def grouped_mm(b: Build, input: Value, weight: Value, offs: Value) -> Value:
    """Rows up to `offs[0]` times the first matrix of `weight`, those up to `offs[1]` times the second, and so on.

    Rows behind the last are 0. Every row meets every matrix, and what is not its own is dropped: which rows a group has
    is data, and the device has no loop whose bounds are data.
    """
    (rows, width), groups = input.shape, weight.shape[0]
    everywhere = input.view(1, rows, width).expand(groups, rows, width)
    products = b.call("bmm", everywhere, weight)
    ends = offs.view(groups, 1, 1)
    place = b.iota(rows, offs.element).view(1, rows, 1)
    inside = place.lt(ends)
    if groups > 1:
        # The groups follow one another: a row is in the first whose end is behind it.
        first = b.full((1, rows, 1), 0, offs.element)
        starts = b.call("slice.Tensor", ends, dim=0, end=groups - 1).expand(groups - 1, rows, 1)
        inside = b.call("logical_and", inside, place.ge(b.call("cat", [first, starts], dim=0)))
    return inside.where(products, 0.0).sum(0)
