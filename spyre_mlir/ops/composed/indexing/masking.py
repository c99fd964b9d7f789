"""Truth values and what they choose: all become selections and comparisons."""

from __future__ import annotations

from typing import Any

from spyre_mlir.ops.annotations import Lanes
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.table import Sample


@ATEN.composed(aten=["masked_fill.Scalar", "masked_fill.Tensor"], promote=True, ulps=1)
def masked_fill(b: Build, self: Lanes, mask: Lanes, value: Lanes) -> Any:
    """`value`, a single number, where the mask holds, else `self`."""
    return b.call("where.self", mask, value, self)


def _triangle(b: Build, comparison: str, value: Any, diagonal: int) -> Any:
    """The elements whose row number, less the diagonal, compares with their column number; 0 elsewhere."""
    rows, columns = b.shape(value)[-2:]
    # The row numbers start at the diagonal, so that no addition is needed.
    row = b.call("arange.start_step", start=diagonal, end=rows + diagonal, step=1)
    column = b.call("arange.start_step", start=0, end=columns, step=1)
    inside = b.call(comparison, b.call("unsqueeze", row, dim=1), column)
    # A selection, not a product: infinities and NaN outside the triangle do not reach the result.
    return b.call("where.self", inside, value, False if b.is_bool(value) else 0)


@ATEN.composed(aten=["tril"], promote=True, ulps=1)
def tril(b: Build, self: Lanes, *, diagonal: int = 0) -> Any:
    """The elements on and below a diagonal of the last two dimensions; 0 elsewhere."""
    return _triangle(b, "ge.Tensor", self, diagonal)


@ATEN.composed(aten=["triu"], promote=True, ulps=1)
def triu(b: Build, self: Lanes, *, diagonal: int = 0) -> Any:
    """The elements on and above a diagonal of the last two dimensions; 0 elsewhere."""
    return _triangle(b, "le.Tensor", self, diagonal)


ATEN.samples(masked_fill, Sample(((3, 64), (64,), ())))
ATEN.samples(tril, Sample(((2, 5, 4),)), Sample(((4, 6),), {"diagonal": -1}))
ATEN.samples(triu, Sample(((2, 5, 4),)), Sample(((4, 6),), {"diagonal": 2}))
