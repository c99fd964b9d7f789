"""Signs, choices, and tests for NaN, infinite and finite numbers."""

from __future__ import annotations

from spyre_mlir.ops.annotations import INF
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.approximations import has_minus
from spyre_mlir.ops.helpers.numbers import number
from spyre_mlir.ops.table import Sample
from spyre_mlir.ops.value import Value


@ATEN.composed(aten=["sign", "sgn"], promote=True, ulps=1)
def sign(b: Build, self: Value) -> Value:
    """1 above 0, -1 below, else 0."""
    if self.is_bool:
        return self.clone()
    below = self.lt(0).where(number(b, -1, self), 0)
    return self.gt(0).where(1, below)


@ATEN.composed(aten=["signbit"], ulps=1)
def signbit(b: Build, self: Value) -> Value:
    """1 where the element is below 0 or a negative zero, else 0."""
    return b.full(self.shape, 0, "i1") if self.is_bool else has_minus(b, self)


@ATEN.composed(aten=["copysign.Tensor", "copysign.Scalar"], promote=True, ulps=1)
def copysign(b: Build, self: Value, other: Value) -> Value:
    """The magnitude of `self` with the sign of `other`, of a zero too."""
    magnitude = abs(self)
    if other.number is not None:
        return -magnitude if str(float(other.number)).startswith("-") else magnitude
    return has_minus(b, other).where(-magnitude, magnitude)


@ATEN.composed(aten=["heaviside"], promote=True, ulps=1)
def heaviside(b: Build, self: Value, values: Value) -> Value:
    """1 above 0, `values` at 0, else 0."""
    if self.is_bool:
        return self.where(True, values)
    above = self.gt(0).where(number(b, 1, values), 0)
    return self.eq(0).where(values, above)


@ATEN.composed(aten=["isnan"], ulps=1)
def isnan(b: Build, self: Value) -> Value:
    """1 where the element is NaN, which differs from itself, else 0."""
    return self.ne(self) if self.is_float else b.full(self.shape, 0, "i1")


@ATEN.composed(aten=["isinf"], ulps=1)
def isinf(b: Build, self: Value) -> Value:
    """1 where the element is infinite, by comparison with the number that stands for infinity, else 0."""
    if not self.is_float:
        return b.full(self.shape, 0, "i1")
    return abs(self).eq(INF)


@ATEN.composed(aten=["isfinite"], ulps=1)
def isfinite(b: Build, self: Value) -> Value:
    """1 where the element is a finite number, else 0."""
    if not self.is_float:
        return b.full(self.shape, 1, "i1")
    # Not a comparison by size: on the device there are numbers beyond what stands in for infinity.
    other = abs(self).ne(INF)
    return self.eq(self).where(other, False)


@ATEN.composed(aten=["fmax"], promote=True, ulps=1)
def fmax(self: Value, other: Value) -> Value:
    """The larger of two elements, the other one where one is NaN."""
    return _passing_over_nan(self.maximum(other), self, other)


@ATEN.composed(aten=["fmin"], promote=True, ulps=1)
def fmin(self: Value, other: Value) -> Value:
    """The smaller of two elements, the other one where one is NaN."""
    return _passing_over_nan(self.minimum(other), self, other)


def _passing_over_nan(out: Value, x: Value, y: Value) -> Value:
    """Return the chosen one of two elements, or the other one where one is NaN."""
    if not x.is_float:
        return out
    out = x.eq(x).where(out, y)
    return y.eq(y).where(out, x)


for _entry in (sign, signbit, isnan, isinf, isfinite):
    ATEN.samples(_entry, Sample(((3, 65),)))
for _entry in (copysign, heaviside, fmax, fmin):
    ATEN.samples(_entry, Sample(((2, 3, 65), (65,))))
