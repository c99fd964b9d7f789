"""Arithmetic of a few operations: interpolation, multiply-add, bounds, lengths, replacement of NaN."""

from __future__ import annotations

from spyre_mlir.ops.annotations import INF, Number
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.table import Sample
from spyre_mlir.ops.value import Value

# The largest number of a format, which stands in for infinity where torch is asked to replace it.
_LARGEST = {"f16": 65504.0, "bf16": 3.3895313892515355e38, "f32": 3.4028234663852886e38, "f64": 1.7976931348623157e308}


@ATEN.composed(aten=["rsub.Scalar"], promote=True, ulps=1)
def rsub_scalar(self: Value, other: Value, *, alpha: Number = 1) -> Value:
    """`other` minus `self` scaled by `alpha`."""
    return other - (self if alpha == 1 else self * alpha)


@ATEN.composed(aten=["addcmul"], promote=True, ulps=8)
def addcmul(self: Value, tensor1: Value, tensor2: Value, *, value: Number = 1) -> Value:
    """self + value * tensor1 * tensor2."""
    product = tensor1 * tensor2
    factor = value if self.is_float else int(value)
    return self + (product if factor == 1 else product * factor)


@ATEN.composed(aten=["lerp.Scalar"], promote=True, ulps=4)
def lerp(self: Value, end: Value, *, weight: Number) -> Value:
    """The point between `self` and `end` that `weight` names, from the nearer one."""
    way = end - self
    if abs(weight) < 0.5:
        return self + way * float(weight)
    return end - way * (1.0 - weight)


@ATEN.composed(aten=["hypot"], promote=True, ulps=4)
def hypot(self: Value, other: Value) -> Value:
    """sqrt(x² + y²), from the ratio of the smaller to the larger, so that no square overflows or vanishes."""
    x, y = abs(self), abs(other)
    larger = x.maximum(y)
    ratio = x.minimum(y) / larger
    ratio = x.eq(y).where(1.0, ratio)
    return larger * (ratio * ratio + 1.0).sqrt()


@ATEN.composed(aten=["clamp.Tensor"], promote=True, ulps=1)
def clamp_tensor(self: Value, min: Value | None = None, max: Value | None = None) -> Value:
    """Limits every element to its own bounds."""
    out = self if min is None else self.maximum(min)
    return out if max is None else out.minimum(max)


@ATEN.composed(aten=["nan_to_num"], promote=True, ulps=1)
def nan_to_num(
    self: Value, *, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Value:
    """Replaces NaN by `nan` and infinities by `posinf` and `neginf`; the defaults are 0 and the largest numbers."""
    if not self.is_float:
        return self.clone()
    largest = _LARGEST[self.element]
    high, low = (largest if posinf is None else posinf), (-largest if neginf is None else neginf)
    out = self.eq(INF).where(float(high), self)
    out = self.eq(-INF).where(float(low), out)
    return self.eq(self).where(out, 0.0 if nan is None else float(nan))


ATEN.samples(rsub_scalar, Sample(((3, 64), (3, 64))), Sample(((3, 64), (3, 64)), {"alpha": 2}))
ATEN.samples(addcmul, Sample(((3, 65), (65,), (3, 1))), Sample(((3, 5), (5,), (3, 5)), {"value": 2.0}))
ATEN.samples(lerp, Sample(((3, 65), (65,)), {"weight": 0.25}), Sample(((3, 65), (65,)), {"weight": 0.75}))
ATEN.samples(clamp_tensor, Sample(((3, 65), (65,), (3, 1))), Sample(((3, 65), (65,))))
ATEN.samples(nan_to_num, Sample(((3, 65),)), Sample(((3, 5),), {"nan": 1.0, "posinf": 2.0, "neginf": 3.0}))
ATEN.samples(hypot, Sample(((2, 3, 65), (65,))))
