"""Truth values and what they choose: all become selections and comparisons."""

from __future__ import annotations

from typing import Any

from spyre_mlir.ops.annotations import Lanes, Number, np
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.composite import decomposes
from spyre_mlir.ops.native import pointwise
from spyre_mlir.ops.table import Sample


@ATEN.composite(aten=["masked_fill.Scalar", "masked_fill.Tensor"])
def masked_fill(self: Lanes, mask: Lanes, value: Lanes) -> Lanes:
    """`value`, a single number, where the mask holds, else `self`."""
    return np.where(mask != 0, value, self)


@decomposes(masked_fill)
def _masked_fill(b: Build, self: Any, mask: Any, value: Any) -> Any:
    return b.call("where.self", mask, value, self)


def same_shape(self: tuple[int, ...], **_: object) -> tuple[int, ...]:
    """Shape of self."""
    return self


@ATEN.composite(aten=["tril"], shape=same_shape)
def tril(self: Lanes, *, diagonal: int = 0) -> Lanes:
    """The elements on and below a diagonal of the last two dimensions; 0 elsewhere."""
    return np.tril(self, diagonal)


@ATEN.composite(aten=["triu"], shape=same_shape)
def triu(self: Lanes, *, diagonal: int = 0) -> Lanes:
    """The elements on and above a diagonal of the last two dimensions; 0 elsewhere."""
    return np.triu(self, diagonal)


def _triangle(b: Build, comparison: str, value: Any, diagonal: int) -> Any:
    """The elements whose row number, less the diagonal, compares with their column number; 0 elsewhere."""
    rows, columns = b.shape(value)[-2:]
    # The row numbers start at the diagonal, so that no addition is needed.
    row = b.call("arange.start_step", start=diagonal, end=rows + diagonal, step=1)
    column = b.call("arange.start_step", start=0, end=columns, step=1)
    inside = b.call(comparison, b.call("unsqueeze", row, dim=1), column)
    # A selection, not a product: infinities and NaN outside the triangle do not reach the result.
    return b.call("where.self", inside, value, False if b.is_bool(value) else 0)


@decomposes(tril)
def _tril(b: Build, self: Any, *, diagonal: int) -> Any:
    return _triangle(b, "ge.Tensor", self, diagonal)


@decomposes(triu)
def _triu(b: Build, self: Any, *, diagonal: int) -> Any:
    return _triangle(b, "le.Tensor", self, diagonal)


@ATEN.composite(aten=["rsub.Scalar"])
def rsub_scalar(self: Lanes, other: Lanes, *, alpha: Number = 1) -> Lanes:
    """`other` minus `self` scaled by `alpha`."""
    return other - alpha * self


@decomposes(rsub_scalar)
def _rsub(b: Build, self: Any, other: Any, *, alpha: Number) -> Any:
    return b.call("sub.Tensor", other, self if alpha == 1 else b.call("mul.Tensor", self, alpha))


ATEN.samples(masked_fill, Sample(((3, 64), (64,), ())))
ATEN.samples(tril, Sample(((2, 5, 4),)), Sample(((4, 6),), {"diagonal": -1}))
ATEN.samples(triu, Sample(((2, 5, 4),)), Sample(((4, 6),), {"diagonal": 2}))
ATEN.samples(rsub_scalar, pointwise.PAIR, Sample(((3, 64), (3, 64)), {"alpha": 2}))
