"""Composed activation functions."""

from __future__ import annotations

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.ops.annotations import Number
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.approximations import log_of_one_plus_exp
from spyre_mlir.ops.helpers.slicing import along, part, reshaped
from spyre_mlir.ops.table import Sample
from spyre_mlir.ops.value import Value

# Constants of the self-normalising unit: Klambauer et al. 2017.
_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772, 1.0507009873554805


@ATEN.composed(aten=["hardtanh"], promote=True, ulps=1)
def hardtanh(self: Value, *, min_val: Number = -1, max_val: Number = 1) -> Value:
    """The element limited to [min_val, max_val]."""
    return self.clamp(min=min_val, max=max_val)


@ATEN.composed(aten=["relu6"], promote=True, ulps=1)
def relu6(self: Value) -> Value:
    """The element limited to [0, 6]."""
    return self.clamp(min=0, max=6)


@ATEN.composed(aten=["leaky_relu"], promote=True, ulps=2)
def leaky_relu(self: Value, *, negative_slope: Number = 0.01) -> Value:
    """The element where positive, else `negative_slope` times it: the larger of both, for slopes up to 1."""
    sloped = self * float(negative_slope)
    if negative_slope == 0:  # 0 times infinity is no number
        return self.gt(0.0).where(self, sloped)
    return self.maximum(sloped) if negative_slope <= 1 else self.minimum(sloped)


def _sloped_below(x: Value, slope: Value) -> Value:
    """x where positive, else a slope times it."""
    return x.gt(0.0).where(x, x * slope)


@ATEN.composed(aten=["prelu"], promote=True, ulps=2)
def prelu(self: Value, weight: Value) -> Value:
    """The element where positive, else the weight of its channel, dimension 1, times it."""
    rank = self.rank
    if weight.rank == 1:
        weight = along(weight, rank, 1) if rank > 1 else reshaped(weight, (1,) * rank)
    return _sloped_below(self, weight)


@ATEN.composed(aten=["_prelu_kernel"], promote=True, ulps=2)
def prelu_kernel(self: Value, weight: Value) -> Value:
    """The element where positive, else the weight times it."""
    return _sloped_below(self, weight)


def _exponential_below(b: Build, x: Value, inner: float, outer: float, scale: float) -> Value:
    """scale * x where positive, else outer * (e^(inner x) - 1)."""
    below = b.call("expm1", x if inner == 1 else x * inner)
    below = below if outer == 1 else below * outer
    above = x if scale == 1 else x * scale
    return x.gt(0.0).where(above, below)


@ATEN.composed(aten=["elu"], promote=True, ulps=4)
def elu(b: Build, self: Value, *, alpha: Number = 1, scale: Number = 1, input_scale: Number = 1) -> Value:
    """scale * x where positive, else scale * alpha * (e^(input_scale x) - 1)."""
    return _exponential_below(b, self, float(input_scale), float(alpha * scale), float(scale))


@ATEN.composed(aten=["celu"], promote=True, ulps=4)
def celu(b: Build, self: Value, *, alpha: Number = 1.0) -> Value:
    """x where positive, else alpha * (e^(x / alpha) - 1)."""
    return _exponential_below(b, self, 1.0 / alpha, float(alpha), 1.0)


@ATEN.composed(aten=["selu"], promote=True, ulps=4)
def selu(b: Build, self: Value) -> Value:
    """The self-normalising exponential linear unit."""
    return _exponential_below(b, self, 1.0, _SELU_ALPHA * _SELU_SCALE, _SELU_SCALE)


def _clipped_line(x: Value) -> Value:
    """x + 3 limited to [0, 6]."""
    return (x + 3.0).clamp(min=0.0, max=6.0)


@ATEN.composed(aten=["hardsigmoid"], promote=True, ulps=2)
def hardsigmoid(self: Value) -> Value:
    """(x + 3) / 6 limited to [0, 1]."""
    return _clipped_line(self) / 6.0


@ATEN.composed(aten=["hardswish"], promote=True, ulps=4)
def hardswish(self: Value) -> Value:
    """x times its hard sigmoid."""
    return self * _clipped_line(self) / 6.0


@ATEN.composed(aten=["softshrink"], promote=True, ulps=1)
def softshrink(self: Value, *, lambd: Number = 0.5) -> Value:
    """x moved towards 0 by `lambd`, and 0 between -lambd and lambd."""
    return self - self.clamp(min=-float(lambd), max=float(lambd))


@ATEN.composed(aten=["log_sigmoid"], promote=True, ulps=4)
def log_sigmoid(self: Value) -> Value:
    """The logarithm of the sigmoid, -log(1 + e^-x)."""
    return -log_of_one_plus_exp(-self)


@ATEN.composed(aten=["log_sigmoid_forward"], promote=True, ulps=4)
def log_sigmoid_forward(b: Build, self: Value) -> tuple[Value, Value]:
    """The logarithm of the sigmoid, and e^-|x|, which its derivative needs."""
    return b.call("log_sigmoid", self), (-abs(self)).exp()


@ATEN.composed(aten=["glu"], ulps=4)
def glu(b: Build, self: Value, *, dim: int = -1) -> Value:
    """The first half along `dim` times the sigmoid of the second."""
    half = self.shape[dim] // 2
    return part(b, self, dim, 0, half) * b.call("sigmoid", part(b, self, dim, half, 2 * half))


@ATEN.composed(aten=["rrelu_with_noise_functional"], ulps=2)
def rrelu(
    b: Build,
    self: Value,
    noise: Value,
    *,
    lower: Number = 0.125,
    upper: Number = 1.0 / 3.0,
    training: bool = False,
) -> tuple[Value, Value]:
    """A leaky unit whose slope is the mean of two outside training; the noise is passed on."""
    if training:
        raise UnsupportedError("a randomised unit in training", hint="call model.eval() before export")
    return b.call("leaky_relu", self, negative_slope=(lower + upper) / 2), noise.clone()


_AROUND_ZERO = Sample(((3, 65),), low=-7.0, high=7.0)
for _entry in (
    hardtanh, relu6, leaky_relu, elu, celu, selu, hardsigmoid, hardswish, softshrink, log_sigmoid,
    log_sigmoid_forward,
):  # fmt: skip
    ATEN.samples(_entry, _AROUND_ZERO)
ATEN.samples(hardtanh, Sample(((4, 5),), {"min_val": -0.5, "max_val": 1.5}))
ATEN.samples(leaky_relu, Sample(((4, 5),), {"negative_slope": 0.2}), Sample(((4, 5),), {"negative_slope": 1.5}))
ATEN.samples(prelu, Sample(((2, 3, 5), (3,))), Sample(((4, 5), (1,))), Sample(((7,), (1,))))
ATEN.samples(prelu_kernel, Sample(((2, 3, 5), (1, 3, 1))))
ATEN.samples(elu, Sample(((4, 5),), {"alpha": 0.5, "scale": 2.0, "input_scale": 1.5}))
ATEN.samples(celu, Sample(((4, 5),), {"alpha": 0.5}))
ATEN.samples(softshrink, Sample(((4, 5),), {"lambd": 0.25}))
ATEN.samples(glu, Sample(((3, 130),)), Sample(((4, 5),), {"dim": 0}), Sample(((2, 6, 5),), {"dim": -2}))
ATEN.samples(rrelu, Sample(((3, 65), (3, 65))), Sample(((4, 5), (4, 5)), {"lower": 0.25, "upper": 0.75}))
