"""Signs, choices, comparisons of truth values, and what a number is: not a number, infinite, finite."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from spyre_mlir.ops.annotations import INF, Lanes, Number
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.composed.math.bitwise import negated
from spyre_mlir.ops.composite import decomposes
from spyre_mlir.ops.helpers.approximations import has_minus, number
from spyre_mlir.ops.helpers.reduction_dims import is_float
from spyre_mlir.ops.native import pointwise
from spyre_mlir.ops.table import OpEntry, Sample

# The largest number of a format, which stands in for infinity where torch is asked to replace it.
_LARGEST = {"f16": 65504.0, "bf16": 3.3895313892515355e38, "f32": 3.4028234663852886e38, "f64": 1.7976931348623157e308}


# Comparisons of truth values by a choice: arith compares numbers only.
_ON_TRUTH: dict[str, Callable[[Build, Any, Any], Any]] = {
    "eq": lambda b, x, y: b.call("where.self", x, y, negated(b, y)),
    "ne": lambda b, x, y: b.call("where.self", x, negated(b, y), y),
    "lt": lambda b, x, y: b.call("where.self", x, False, y),
    "le": lambda b, x, y: b.call("where.self", x, y, True),
    "gt": lambda b, x, y: b.call("where.self", x, negated(b, y), False),
    "ge": lambda b, x, y: b.call("where.self", x, True, negated(b, y)),
    "maximum": lambda b, x, y: b.call("where.self", x, True, y),
    "minimum": lambda b, x, y: b.call("where.self", x, y, False),
    "mul": lambda b, x, y: b.call("where.self", x, y, False),
}


def _on_truth(entry: OpEntry) -> None:
    """Lets an entry take truth values alone."""
    rule = _ON_TRUTH[entry.name]

    @decomposes(entry)
    def _(b: Build, self: Any, other: Any) -> Any:
        if not (b.is_bool(self) and b.is_bool(other)):
            return None
        if isinstance(self, bool):
            self = b.full((), self, "i1")
        return rule(b, self, other)


for _entry in (
    pointwise.eq, pointwise.ne, pointwise.lt, pointwise.le, pointwise.gt, pointwise.ge, pointwise.maximum,
    pointwise.minimum, pointwise.mul,
):  # fmt: skip
    _on_truth(_entry)


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


@ATEN.composed(aten=["nan_to_num"], promote=True, ulps=1)
def nan_to_num(
    b: Build, self: Lanes, *, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Any:
    """`nan` for what is no number, `posinf` and `neginf` for infinities; 0 and the largest numbers if not given."""
    if not is_float(b, self):
        return b.call("clone", self)
    largest = _LARGEST[b.element(self)]
    high, low = (largest if posinf is None else posinf), (-largest if neginf is None else neginf)
    out = b.call("where.self", b.call("eq.Scalar", self, INF), float(high), self)
    out = b.call("where.self", b.call("eq.Scalar", self, -INF), float(low), out)
    return b.call("where.self", b.call("eq.Tensor", self, self), out, 0.0 if nan is None else float(nan))


@ATEN.composed(aten=["clamp.Tensor"], promote=True, ulps=1)
def clamp_tensor(b: Build, self: Lanes, min: Lanes | None = None, max: Lanes | None = None) -> Any:
    """Limits every element to its own bounds."""
    out = self if min is None else b.call("maximum", self, min)
    return out if max is None else b.call("minimum", out, max)


@ATEN.composed(aten=["hypot"], promote=True, ulps=4)
def hypot(b: Build, self: Lanes, other: Lanes) -> Any:
    """sqrt(x² + y²), from the ratio of the smaller to the larger, so that no square overflows or vanishes."""
    x, y = b.call("abs", self), b.call("abs", other)
    larger = b.call("maximum", x, y)
    ratio = b.call("div.Tensor", b.call("minimum", x, y), larger)
    ratio = b.call("where.self", b.call("eq.Tensor", x, y), 1.0, ratio)
    return b.call("mul.Tensor", larger, b.call("sqrt", b.call("add.Tensor", b.call("mul.Tensor", ratio, ratio), 1.0)))


@ATEN.composed(aten=["lerp.Scalar"], promote=True, ulps=4)
def lerp(b: Build, self: Lanes, end: Lanes, *, weight: Number) -> Any:
    """The point between `self` and `end` that `weight` names, from the nearer one."""
    way = b.call("sub.Tensor", end, self)
    if abs(weight) < 0.5:
        return b.call("add.Tensor", self, b.call("mul.Tensor", way, float(weight)))
    return b.call("sub.Tensor", end, b.call("mul.Tensor", way, 1.0 - weight))


@ATEN.composed(aten=["addcmul"], promote=True, ulps=8)
def addcmul(b: Build, self: Lanes, tensor1: Lanes, tensor2: Lanes, *, value: Number = 1) -> Any:
    """self + value * tensor1 * tensor2."""
    product = b.call("mul.Tensor", tensor1, tensor2)
    return b.call("add.Tensor", self, product if value == 1 else b.call("mul.Tensor", product, value))


for _entry in (sign, signbit, isnan, isinf, isfinite, nan_to_num):
    ATEN.samples(_entry, Sample(((3, 65),)))
for _entry in (copysign, heaviside, fmax, fmin, hypot):
    ATEN.samples(_entry, Sample(((2, 3, 65), (65,))))
ATEN.samples(nan_to_num, Sample(((3, 5),), {"nan": 1.0, "posinf": 2.0, "neginf": 3.0}))
ATEN.samples(clamp_tensor, Sample(((3, 65), (65,), (3, 1))), Sample(((3, 65), (65,))))
ATEN.samples(lerp, Sample(((3, 65), (65,)), {"weight": 0.25}), Sample(((3, 65), (65,)), {"weight": 0.75}))
ATEN.samples(addcmul, Sample(((3, 65), (65,), (3, 1))), Sample(((3, 5), (5,), (3, 5)), {"value": 2.0}))
