"""Softmax, its logarithm, and the variant that gives 0 where nothing is left to choose from."""

from __future__ import annotations

from spyre_mlir.ops.annotations import DType, Lanes, np
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.reduction_dims import MASKED
from spyre_mlir.ops.ignored_arguments import DTYPE, HALF_TO_FLOAT
from spyre_mlir.ops.table import Sample
from spyre_mlir.ops.value import Value


def _softmax_meaning(self: Lanes, *, dim: int) -> Lanes:
    e = np.exp(self - np.max(self, axis=dim, keepdims=True))
    return e / np.sum(e, axis=dim, keepdims=True)


@ATEN.composed(aten=["softmax.int", "_softmax"], promote=True, meaning=_softmax_meaning, ignores=[HALF_TO_FLOAT, DTYPE])
def softmax(self: Value, *, dim: int) -> Value:
    """exp(x) over the sum of exp(x) along `dim`."""
    e = (self - self.amax(dim, keepdim=True)).exp()
    return e / e.sum(dim, keepdim=True)


def _beside_meaning(self: Lanes, other: Lanes, *, dim: int) -> Lanes:
    peak = np.maximum(np.max(self, axis=dim, keepdims=True), other)
    e = np.exp(self - peak)
    return e / (np.sum(e, axis=dim, keepdims=True) + np.exp(other - peak))


@ATEN.composed(aten=["spyre::softmax_beside"], promote=True, meaning=_beside_meaning)
def softmax_beside(self: Value, other: Value, *, dim: int) -> Value:
    """exp(x) over the sum of exp(x) along `dim` and exp(other), which has one number there."""
    peak = self.amax(dim, keepdim=True).maximum(other)
    e = (self - peak).exp()
    return e / (e.sum(dim, keepdim=True) + (other - peak).exp())


@ATEN.composed(aten=["log_softmax.int", "_log_softmax"], promote=True)
def log_softmax(b: Build, self: Value, *, dim: int, half_to_float: bool = False, dtype: DType | None = None) -> Value:
    """x less the logarithm of the sum of exp(x) along `dim`; the largest x is taken out first."""
    value = b.cast(self, "f32" if half_to_float else dtype or self.element)
    less = value - value.amax(dim, keepdim=True)
    total = less.exp().sum(dim, keepdim=True)
    return less - total.log()


@ATEN.composed(aten=["_safe_softmax"], promote=True)
def safe_softmax(b: Build, self: Value, *, dim: int, dtype: DType | None = None) -> Value:
    """exp(x) over the sum of exp(x) along `dim`; 0 where every x is minus infinity."""
    value = b.cast(self, dtype or self.element)
    peak = value.amax(dim, keepdim=True)
    # Minus infinity is the largest negative half on the device, and less than that before.
    peak = peak.le(MASKED).where(0.0, peak)
    e = (value - peak).exp()
    # A row with one entry left has a sum of at least exp(0) = 1, so the floor changes masked rows only.
    total = e.sum(dim, keepdim=True).maximum(1.0)
    return e / total


ATEN.samples(softmax, Sample(((3, 65),), {"dim": -1}), Sample(((4, 5, 6),), {"dim": 1}))
ATEN.samples(softmax, Sample(((3, 65),), {"dim": -1, "half_to_float": False}))
ATEN.samples(softmax_beside, Sample(((3, 65), (3, 1)), {"dim": -1}), Sample(((4, 5, 6), (4, 1, 6)), {"dim": 1}))
ATEN.samples(
    log_softmax,
    Sample(((3, 65),), {"dim": -1}),
    Sample(((4, 5, 6),), {"dim": 1, "half_to_float": False}),
    Sample(((),), {"dim": 0}),
)
ATEN.samples(safe_softmax, Sample(((3, 65),), {"dim": -1}), Sample(((4, 5, 6),), {"dim": 1}))
