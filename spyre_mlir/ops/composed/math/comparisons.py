"""Signs, choices, comparisons of truth values, and what a number is: not a number, infinite, finite."""

from __future__ import annotations

from typing import Any

from spyre_mlir.ops.annotations import INF, Lanes
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.approximations import has_minus
from spyre_mlir.ops.helpers.numbers import number
from spyre_mlir.ops.helpers.reduction_dims import is_float
from spyre_mlir.ops.table import Sample


@ATEN.composed(aten=["sign", "sgn"], promote=True, ulps=1)
def sign(b: Build, self: Lanes) -> Any:
    """1 above 0, -1 below, else 0."""
    if b.is_bool(self):
        return b.call("clone", self)
    below = b.call("where.self", b.call("lt.Scalar", self, 0), number(b, -1, self), 0)
    return b.call("where.self", b.call("gt.Scalar", self, 0), 1, below)


@ATEN.composed(aten=["signbit"], ulps=1)
def signbit(b: Build, self: Lanes) -> Any:
    """Whether an element is below 0, or a negative zero."""
    return b.full(b.shape(self), 0, "i1") if b.is_bool(self) else has_minus(b, self)


@ATEN.composed(aten=["copysign.Tensor", "copysign.Scalar"], promote=True, ulps=1)
def copysign(b: Build, self: Lanes, other: Lanes) -> Any:
    """The magnitude of `self` with the sign of `other`, of a zero too."""
    magnitude = b.call("abs", self)
    if not b.element(other):
        return b.call("neg", magnitude) if str(float(other)).startswith("-") else magnitude
    return b.call("where.self", has_minus(b, other), b.call("neg", magnitude), magnitude)


@ATEN.composed(aten=["heaviside"], promote=True, ulps=1)
def heaviside(b: Build, self: Lanes, values: Lanes) -> Any:
    """1 above 0, `values` at 0, else 0."""
    if b.is_bool(self):
        return b.call("where.self", self, True, values)
    above = b.call("where.self", b.call("gt.Scalar", self, 0), number(b, 1, values), 0)
    return b.call("where.self", b.call("eq.Scalar", self, 0), values, above)


@ATEN.composed(aten=["isnan"], ulps=1)
def isnan(b: Build, self: Lanes) -> Any:
    """Whether an element is no number: it differs from itself."""
    return b.call("ne.Tensor", self, self) if is_float(b, self) else b.full(b.shape(self), 0, "i1")


@ATEN.composed(aten=["isinf"], ulps=1)
def isinf(b: Build, self: Lanes) -> Any:
    """Whether an element is infinite: beyond every number, as a comparison with the stand-in sees it."""
    if not is_float(b, self):
        return b.full(b.shape(self), 0, "i1")
    return b.call("eq.Scalar", b.call("abs", self), INF)


@ATEN.composed(aten=["isfinite"], ulps=1)
def isfinite(b: Build, self: Lanes) -> Any:
    """Whether an element is a number and not infinite."""
    if not is_float(b, self):
        return b.full(b.shape(self), 1, "i1")
    # Not a comparison by size: on the device there are numbers beyond what stands in for infinity.
    other = b.call("ne.Scalar", b.call("abs", self), INF)
    return b.call("where.self", b.call("eq.Tensor", self, self), other, False)


@ATEN.composed(aten=["fmax"], promote=True, ulps=1)
def fmax(b: Build, self: Lanes, other: Lanes) -> Any:
    """The larger of two elements, the other one where one is no number."""
    return _passing_over_nan(b, "maximum", self, other)


@ATEN.composed(aten=["fmin"], promote=True, ulps=1)
def fmin(b: Build, self: Lanes, other: Lanes) -> Any:
    """The smaller of two elements, the other one where one is no number."""
    return _passing_over_nan(b, "minimum", self, other)


def _passing_over_nan(b: Build, choice: str, x: Any, y: Any) -> Any:
    out = b.call(choice, x, y)
    if not is_float(b, x):
        return out
    out = b.call("where.self", b.call("eq.Tensor", x, x), out, y)
    return b.call("where.self", b.call("eq.Tensor", y, y), out, x)


for _entry in (sign, signbit, isnan, isinf, isfinite):
    ATEN.samples(_entry, Sample(((3, 65),)))
for _entry in (copysign, heaviside, fmax, fmin):
    ATEN.samples(_entry, Sample(((2, 3, 65), (65,))))
