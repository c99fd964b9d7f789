"""Element-by-element operations, each one hardware function of the SFP."""

from __future__ import annotations

from spyre_mlir.ops.annotations import INF, Lanes, Number, np
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.numbers import scaled
from spyre_mlir.ops.helpers.truth_values import on_truth
from spyre_mlir.ops.table import Sample
from spyre_mlir.ops.value import Value

_TABLE = "published OpFunc tables of torch-spyre and the interface specification; certain"

PAIR = Sample(((3, 64), (3, 64)))
BROADCAST = Sample(((2, 3, 65), (65,)))
ONE = Sample(((3, 65),))
POSITIVE = Sample(((3, 65),), low=0.1, high=4.0)


def _sub(self: Value, other: Value, *, alpha: Number) -> Value | None:
    return None if alpha == 1 else self - scaled(other, alpha)


def _add(b: Build, self: Value, other: Value, *, alpha: Number) -> Value | None:
    if self.is_bool and other.is_bool:
        return b.call("logical_or", self, other if alpha else b.full(other.shape, 0, "i1"))
    return None if alpha == 1 else self + scaled(other, alpha)


@ATEN.pointwise(
    aten=["add.Tensor", "add.Scalar"], opfunc="add", fp32=True, scalar="arith.addf", source=_TABLE, decompose=_add
)
def add(self: Lanes, other: Lanes, *, alpha: Number = 1) -> Lanes:
    """Adds `other`, scaled by `alpha`, to `self`."""
    return self + (other if alpha == 1 else alpha * other)


@ATEN.pointwise(
    aten=["sub.Tensor", "sub.Scalar"], opfunc="sub", fp32=True, scalar="arith.subf", source=_TABLE, decompose=_sub
)
def sub(self: Lanes, other: Lanes, *, alpha: Number = 1) -> Lanes:
    """Subtracts `other`, scaled by `alpha`, from `self`."""
    return self - (other if alpha == 1 else alpha * other)


@ATEN.pointwise(
    aten=["mul.Tensor", "mul.Scalar"],
    opfunc="mul",
    fp32=True,
    scalar="arith.mulf",
    source=_TABLE,
    decompose=on_truth("mul"),
)
def mul(self: Lanes, other: Lanes) -> Lanes:
    """Multiplies `self` by `other`."""
    return self * other


@ATEN.pointwise(
    aten=["div.Tensor", "div.Scalar"], opfunc="realdiv", fp32=True, scalar="arith.divf", ulps=2, source=_TABLE
)
def div(self: Lanes, other: Lanes) -> Lanes:
    """Divides `self` by `other`, without rounding the quotient."""
    return self / other


@ATEN.pointwise(
    aten=["maximum"], opfunc="maximum", fp32=True, scalar="arith.maximumf", source=_TABLE, decompose=on_truth("maximum")
)
def maximum(self: Lanes, other: Lanes) -> Lanes:
    """The larger of two elements."""
    return np.maximum(self, other)


@ATEN.pointwise(
    aten=["minimum"], opfunc="minimum", fp32=True, scalar="arith.minimumf", source=_TABLE, decompose=on_truth("minimum")
)
def minimum(self: Lanes, other: Lanes) -> Lanes:
    """The smaller of two elements."""
    return np.minimum(self, other)


@ATEN.pointwise(
    aten=["eq.Tensor", "eq.Scalar"],
    opfunc="equal",
    fp32=True,
    scalar="arith.cmpf oeq",
    boolean=True,
    source=_TABLE,
    decompose=on_truth("eq"),
)
def eq(self: Lanes, other: Lanes) -> Lanes:
    """1 where the elements are equal, else 0."""
    return self == other


@ATEN.pointwise(
    aten=["ne.Tensor", "ne.Scalar"],
    opfunc="notequal",
    fp32=True,
    scalar="arith.cmpf une",
    boolean=True,
    source=_TABLE,
    decompose=on_truth("ne"),
)
def ne(self: Lanes, other: Lanes) -> Lanes:
    """1 where the elements differ, else 0."""
    return self != other


@ATEN.pointwise(
    aten=["ge.Tensor", "ge.Scalar"],
    opfunc="greaterequal",
    fp32=True,
    scalar="arith.cmpf oge",
    boolean=True,
    source=_TABLE,
    decompose=on_truth("ge"),
)
def ge(self: Lanes, other: Lanes) -> Lanes:
    """1 where `self` >= `other`, else 0."""
    return self >= other


@ATEN.pointwise(
    aten=["le.Tensor", "le.Scalar"],
    opfunc="lesserequal",
    fp32=True,
    scalar="arith.cmpf ole",
    boolean=True,
    source=_TABLE,
    decompose=on_truth("le"),
)
def le(self: Lanes, other: Lanes) -> Lanes:
    """1 where `self` <= `other`, else 0."""
    return self <= other


@ATEN.pointwise(
    aten=["gt.Tensor", "gt.Scalar"],
    opfunc="greaterthan",
    fp32=True,
    scalar="arith.cmpf ogt",
    boolean=True,
    source=_TABLE,
    decompose=on_truth("gt"),
)
def gt(self: Lanes, other: Lanes) -> Lanes:
    """1 where `self` > `other`, else 0."""
    return self > other


@ATEN.pointwise(
    aten=["lt.Tensor", "lt.Scalar"],
    opfunc="lesserthan",
    fp32=True,
    scalar="arith.cmpf olt",
    boolean=True,
    source=_TABLE,
    decompose=on_truth("lt"),
)
def lt(self: Lanes, other: Lanes) -> Lanes:
    """1 where `self` < `other`, else 0."""
    return self < other


@ATEN.pointwise(
    aten=["where.self", "where.ScalarOther", "where.ScalarSelf", "where.Scalar"],
    opfunc="where3",
    fp32=True,
    source=_TABLE,
)
def where(condition: Lanes, self: Lanes, other: Lanes) -> Lanes:
    """`self` where the condition is not 0, else `other`."""
    return np.where(condition != 0, self, other)


@ATEN.pointwise(aten=["neg"], opfunc="neg", fp32=True, scalar="arith.negf", source=_TABLE)
def neg(self: Lanes) -> Lanes:
    """Changes the sign."""
    return -self


@ATEN.pointwise(aten=["abs"], opfunc="abs", fp32=True, scalar="math.absf", source=_TABLE)
def abs(self: Lanes) -> Lanes:
    """The magnitude."""
    return np.abs(self)


@ATEN.pointwise(aten=["exp"], opfunc="exp", fp32=True, scalar="math.exp", ulps=4, source=_TABLE)
def exp(self: Lanes) -> Lanes:
    """The exponential function."""
    return np.exp(self)


@ATEN.pointwise(aten=["log"], opfunc="log", scalar="math.log", ulps=4, source=_TABLE)
def log(self: Lanes) -> Lanes:
    """The natural logarithm."""
    return np.log(self)


@ATEN.pointwise(aten=["sqrt"], opfunc="sqrt", fp32=True, scalar="math.sqrt", ulps=2, source=_TABLE)
def sqrt(self: Lanes) -> Lanes:
    """The square root."""
    return np.sqrt(self)


@ATEN.pointwise(aten=["rsqrt"], opfunc="rsqrt", fp32=True, scalar="math.rsqrt", ulps=2, source=_TABLE)
def rsqrt(self: Lanes) -> Lanes:
    """One over the square root."""
    return 1.0 / np.sqrt(self)


@ATEN.pointwise(aten=["reciprocal"], opfunc="reciprocal", fp32=True, ulps=2, source=_TABLE)
def reciprocal(self: Lanes) -> Lanes:
    """One over the element."""
    return 1.0 / self


@ATEN.pointwise(aten=["tanh"], opfunc="tanh", scalar="math.tanh", ulps=4, source=_TABLE)
def tanh(self: Lanes) -> Lanes:
    """The hyperbolic tangent."""
    return np.tanh(self)


@ATEN.pointwise(aten=["floor"], opfunc="floor", fp32=True, scalar="math.floor", source=_TABLE)
def floor(self: Lanes) -> Lanes:
    """The largest integer not above the element."""
    return np.floor(self)


def _clamp(self: Value, *, min: Number | None, max: Number | None) -> Value:
    # `clip` spells its bounds as DL16 codes; maximum and minimum take them as exact scalars.
    out = self if min is None else self.maximum(min)
    return out if max is None else out.minimum(max)


@ATEN.pointwise(
    aten=["clamp"],
    opfunc="clip",
    fp32=True,
    source=_TABLE,
    op_info={"min": "clipMin", "max": "clipMax"},
    decompose=_clamp,
)
def clamp(self: Lanes, *, min: Number | None = None, max: Number | None = None) -> Lanes:
    """Limits every element to [min, max]; None leaves a side open. As in torch, max wins if min > max."""
    return np.minimum(np.maximum(self, -INF if min is None else min), INF if max is None else max)


for _entry in (add, sub, mul, maximum, minimum, eq, ne, ge, le, gt, lt, div):
    ATEN.samples(_entry, PAIR, BROADCAST)
for _entry in (neg, abs, exp, tanh, floor):
    ATEN.samples(_entry, ONE)
for _entry in (log, sqrt, rsqrt, reciprocal):
    ATEN.samples(_entry, POSITIVE)
ATEN.samples(where, Sample(((3, 64), (3, 64), (64,))))
for _entry in (add, sub):
    ATEN.samples(_entry, Sample(((3, 64), (3, 64)), {"alpha": 2}))
ATEN.samples(clamp, Sample(((3, 64),), {"min": -0.5, "max": 1.0}), Sample(((3, 64),), {"min": 0.0}))
