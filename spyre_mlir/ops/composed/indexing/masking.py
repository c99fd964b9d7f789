"""Truth values and what they choose: all become selections and comparisons."""

from __future__ import annotations

from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.table import Sample
from spyre_mlir.ops.value import Value


@ATEN.composed(aten=["masked_fill.Scalar", "masked_fill.Tensor"], promote=True, ulps=1)
def masked_fill(self: Value, mask: Value, value: Value) -> Value:
    """`value`, a single number, where the mask holds, else `self`."""
    return mask.where(value, self)


def _places(b: Build, value: Value, diagonal: int) -> tuple[Value, Value]:
    """The row number, less the diagonal, and the column number of the elements of the last two dimensions."""
    rows, columns = value.shape[-2:]
    # The row numbers start at the diagonal, so that no addition is needed.
    row = b.call("arange.start_step", start=diagonal, end=rows + diagonal, step=1)
    column = b.call("arange.start_step", start=0, end=columns, step=1)
    return row.unsqueeze(1), column


def _kept(inside: Value, value: Value) -> Value:
    """The elements inside a triangle: a selection, no product, which infinities and NaN outside would reach."""
    return inside.where(value, False if value.is_bool else 0)


@ATEN.composed(aten=["tril"], promote=True, ulps=1)
def tril(b: Build, self: Value, *, diagonal: int = 0) -> Value:
    """The elements on and below a diagonal of the last two dimensions; 0 elsewhere."""
    row, column = _places(b, self, diagonal)
    return _kept(row.ge(column), self)


@ATEN.composed(aten=["triu"], promote=True, ulps=1)
def triu(b: Build, self: Value, *, diagonal: int = 0) -> Value:
    """The elements on and above a diagonal of the last two dimensions; 0 elsewhere."""
    row, column = _places(b, self, diagonal)
    return _kept(row.le(column), self)


ATEN.samples(masked_fill, Sample(((3, 64), (64,), ())))
ATEN.samples(tril, Sample(((2, 5, 4),)), Sample(((4, 6),), {"diagonal": -1}))
ATEN.samples(triu, Sample(((2, 5, 4),)), Sample(((4, 6),), {"diagonal": 2}))
