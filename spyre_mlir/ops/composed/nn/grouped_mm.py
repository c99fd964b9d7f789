"""Products of rows with the matrix of their group, as mixtures of experts compute them."""

from __future__ import annotations

from typing import Any

from spyre_mlir.ops.annotations import Lanes
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build


@ATEN.composed(aten=["transformers::grouped_mm_fallback"], ulps=16)
def grouped_mm(b: Build, input: Lanes, weight: Lanes, offs: Lanes) -> Any:
    """Rows up to `offs[0]` times the first matrix of `weight`, those up to `offs[1]` times the second, and so on.

    Rows behind the last are 0. Every row meets every matrix, and what is not its own is dropped: which rows a group has
    is data, and the device has no loop whose bounds are data.
    """
    (rows, width), groups = b.shape(input), b.shape(weight)[0]
    everywhere = b.call("expand", b.call("view", input, size=(1, rows, width)), size=(groups, rows, width))
    products = b.call("bmm", everywhere, weight)
    ends = b.call("view", offs, size=(groups, 1, 1))
    place = b.call("view", b.iota(rows, b.element(offs)), size=(1, rows, 1))
    inside = b.call("lt.Tensor", place, ends)
    if groups > 1:
        # The groups follow one another: a row is in the first whose end is behind it.
        first = b.full((1, rows, 1), 0, b.element(offs))
        starts = b.call("expand", b.call("slice.Tensor", ends, dim=0, end=groups - 1), size=(groups - 1, rows, 1))
        inside = b.call("logical_and", inside, b.call("ge.Tensor", place, b.call("cat", [first, starts], dim=0)))
    return b.call("sum.dim_IntList", b.call("where.self", inside, products, 0.0), dim=(0,))
