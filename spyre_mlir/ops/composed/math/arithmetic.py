"""Arithmetic that is a few operations: mixtures, products added, bounds, lengths, stand-ins for what is no number."""

from __future__ import annotations

from typing import Any

from spyre_mlir.ops.annotations import INF, Lanes, Number
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.reduction_dims import is_float
from spyre_mlir.ops.table import Sample

# The largest number of a format, which stands in for infinity where torch is asked to replace it.
_LARGEST = {"f16": 65504.0, "bf16": 3.3895313892515355e38, "f32": 3.4028234663852886e38, "f64": 1.7976931348623157e308}


@ATEN.composed(aten=["rsub.Scalar"], promote=True, ulps=1)
def rsub_scalar(b: Build, self: Lanes, other: Lanes, *, alpha: Number = 1) -> Any:
    """`other` minus `self` scaled by `alpha`."""
    return b.call("sub.Tensor", other, self if alpha == 1 else b.call("mul.Tensor", self, alpha))


@ATEN.composed(aten=["addcmul"], promote=True, ulps=8)
def addcmul(b: Build, self: Lanes, tensor1: Lanes, tensor2: Lanes, *, value: Number = 1) -> Any:
    """self + value * tensor1 * tensor2."""
    product = b.call("mul.Tensor", tensor1, tensor2)
    return b.call("add.Tensor", self, product if value == 1 else b.call("mul.Tensor", product, value))


@ATEN.composed(aten=["lerp.Scalar"], promote=True, ulps=4)
def lerp(b: Build, self: Lanes, end: Lanes, *, weight: Number) -> Any:
    """The point between `self` and `end` that `weight` names, from the nearer one."""
    way = b.call("sub.Tensor", end, self)
    if abs(weight) < 0.5:
        return b.call("add.Tensor", self, b.call("mul.Tensor", way, float(weight)))
    return b.call("sub.Tensor", end, b.call("mul.Tensor", way, 1.0 - weight))


@ATEN.composed(aten=["hypot"], promote=True, ulps=4)
def hypot(b: Build, self: Lanes, other: Lanes) -> Any:
    """sqrt(x² + y²), from the ratio of the smaller to the larger, so that no square overflows or vanishes."""
    x, y = b.call("abs", self), b.call("abs", other)
    larger = b.call("maximum", x, y)
    ratio = b.call("div.Tensor", b.call("minimum", x, y), larger)
    ratio = b.call("where.self", b.call("eq.Tensor", x, y), 1.0, ratio)
    return b.call("mul.Tensor", larger, b.call("sqrt", b.call("add.Tensor", b.call("mul.Tensor", ratio, ratio), 1.0)))


@ATEN.composed(aten=["clamp.Tensor"], promote=True, ulps=1)
def clamp_tensor(b: Build, self: Lanes, min: Lanes | None = None, max: Lanes | None = None) -> Any:
    """Limits every element to its own bounds."""
    out = self if min is None else b.call("maximum", self, min)
    return out if max is None else b.call("minimum", out, max)


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


ATEN.samples(rsub_scalar, Sample(((3, 64), (3, 64))), Sample(((3, 64), (3, 64)), {"alpha": 2}))
ATEN.samples(addcmul, Sample(((3, 65), (65,), (3, 1))), Sample(((3, 5), (5,), (3, 5)), {"value": 2.0}))
ATEN.samples(lerp, Sample(((3, 65), (65,)), {"weight": 0.25}), Sample(((3, 65), (65,)), {"weight": 0.75}))
ATEN.samples(clamp_tensor, Sample(((3, 65), (65,), (3, 1))), Sample(((3, 65), (65,))))
ATEN.samples(nan_to_num, Sample(((3, 65),)), Sample(((3, 5),), {"nan": 1.0, "posinf": 2.0, "neginf": 3.0}))
ATEN.samples(hypot, Sample(((2, 3, 65), (65,))))
