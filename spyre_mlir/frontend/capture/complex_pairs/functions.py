"""Element-wise functions of complex numbers on their parts."""

from __future__ import annotations

import math
from typing import Any, cast

import torch
from torch.fx import Node

from spyre_mlir.frontend.capture.complex_pairs.arithmetic import (
    Given,
    Rule,
    is_short_power,
    power,
    product,
    quotient,
    scaled,
    total,
)
from spyre_mlir.frontend.capture.complex_pairs.writer import ComplexParts, PartWriter

_ATEN = torch.ops.aten
# tanh is 1 in float32 from here on, and its square does not overflow.
_SATURATED = 20.0


def absolute(w: PartWriter, z: ComplexParts) -> Node:
    """Write the magnitude of z, which is infinite where one part is, even beside NaN in the other."""
    return w(_ATEN.hypot.default, z.re, z.im)


def _angle(w: PartWriter, z: ComplexParts) -> Node:
    return w(_ATEN.atan2.default, z.im, z.re)


def exponential(w: PartWriter, z: ComplexParts) -> ComplexParts:
    """Write e to the power of z.

    It has no imaginary part where z has none, also where its real part is infinite; at minus infinity it is 0.
    """
    size, gone = w(_ATEN.exp.default, z.re), w.compare("eq", z.re, -math.inf)
    re = w.where(gone, 0.0, w.mul(size, w(_ATEN.cos.default, z.im)))
    im = w.where(gone, 0.0, w.mul(size, w(_ATEN.sin.default, z.im)))
    return ComplexParts(re, w.where(w.compare("eq", z.im, 0.0), z.im, im))


def logarithm(w: PartWriter, z: ComplexParts) -> ComplexParts:
    """Write the natural logarithm of z."""
    return ComplexParts(w(_ATEN.log.default, absolute(w, z)), _angle(w, z))


def _exponential_of_two(w: PartWriter, z: ComplexParts) -> ComplexParts:
    return exponential(w, ComplexParts(w.mul(z.re, math.log(2)), w.mul(z.im, math.log(2))))


def _scaled_logarithm(base: float) -> Any:
    def written(w: PartWriter, z: ComplexParts) -> ComplexParts:
        return ComplexParts(*(w.mul(part, 1 / math.log(base)) for part in logarithm(w, z)))

    return written


def root(w: PartWriter, z: ComplexParts) -> ComplexParts:
    """Write the square root of z, whose real part is not negative; no part is a difference of near numbers."""
    half = w.mul(w.add(absolute(w, z), w(_ATEN.abs.default, z.re)), 0.5)
    large = w(_ATEN.sqrt.default, half)
    small = w.where(w.compare("eq", large, 0.0), z.im, w.div(w.mul(z.im, 0.5), large))
    right = w.compare("ge", z.re, 0.0)
    left = w(_ATEN.copysign.Tensor, large, z.im)
    return ComplexParts(w.where(right, large, w(_ATEN.abs.default, small)), w.where(right, small, left))


def _reciprocal_root(w: PartWriter, z: ComplexParts) -> ComplexParts:
    return quotient(w, ComplexParts(1.0, 0.0), root(w, z))


def _sinh(w: PartWriter, z: ComplexParts) -> ComplexParts:
    re = w.mul(w(_ATEN.sinh.default, z.re), w(_ATEN.cos.default, z.im))
    return ComplexParts(re, w.mul(w(_ATEN.cosh.default, z.re), w(_ATEN.sin.default, z.im)))


def _cosh(w: PartWriter, z: ComplexParts) -> ComplexParts:
    re = w.mul(w(_ATEN.cosh.default, z.re), w(_ATEN.cos.default, z.im))
    return ComplexParts(re, w.mul(w(_ATEN.sinh.default, z.re), w(_ATEN.sin.default, z.im)))


def _tanh(w: PartWriter, z: ComplexParts) -> ComplexParts:
    """(sinh x cosh x + i sin y cos y) / (sinh² x + cos² y)."""
    near = w(_ATEN.clamp.default, z.re, -_SATURATED, _SATURATED)
    sinh, cosh = w(_ATEN.sinh.default, near), w(_ATEN.cosh.default, near)
    sin, cos = w(_ATEN.sin.default, z.im), w(_ATEN.cos.default, z.im)
    below = w.add(w.mul(sinh, sinh), w.mul(cos, cos))
    return ComplexParts(w.div(w.mul(sinh, cosh), below), w.div(w.mul(sin, cos), below))


def _turned(w: PartWriter, z: ComplexParts) -> ComplexParts:
    """I times z."""
    return ComplexParts(w.neg(z.im), z.re)


def _turned_back(w: PartWriter, z: ComplexParts) -> ComplexParts:
    """-i times z."""
    return ComplexParts(z.im, w.neg(z.re))


def _sin(w: PartWriter, z: ComplexParts) -> ComplexParts:
    return _turned_back(w, _sinh(w, _turned(w, z)))


def _cos(w: PartWriter, z: ComplexParts) -> ComplexParts:
    return _cosh(w, _turned(w, z))


def _tan(w: PartWriter, z: ComplexParts) -> ComplexParts:
    return _turned_back(w, _tanh(w, _turned(w, z)))


def _sigmoid(w: PartWriter, z: ComplexParts) -> ComplexParts:
    below = total(w, ComplexParts(1.0, 0.0), exponential(w, ComplexParts(w.neg(z.re), w.neg(z.im))))
    return quotient(w, ComplexParts(1.0, 0.0), below)


def _silu(w: PartWriter, z: ComplexParts) -> ComplexParts:
    return product(w, z, _sigmoid(w, z))


def _sign(w: PartWriter, z: ComplexParts) -> ComplexParts:
    """Z over its magnitude; 0 for 0."""
    size = absolute(w, z)
    zero = w.compare("eq", size, 0.0)
    return ComplexParts(*(w.where(zero, 0.0, w.div(part, size)) for part in z))


def _either(test: Any, both: Any) -> Any:
    def written(w: PartWriter, z: ComplexParts) -> Node:
        return w(both, w(test, z.re), w(test, z.im))

    return written


def truth(w: PartWriter, z: ComplexParts) -> Node:
    """Write whether z is not 0."""
    return w(_ATEN.logical_or.default, w.compare("ne", z.re, 0.0), w.compare("ne", z.im, 0.0))


def _is_zero(w: PartWriter, z: ComplexParts) -> Node:
    return w(_ATEN.logical_not.default, truth(w, z))


def _polar(w: PartWriter, given: Given) -> ComplexParts:
    size, angle = given["abs"], given["angle"]
    return ComplexParts(
        w.mul(size, w(_ATEN.cos.default, angle)),
        w.mul(size, w(_ATEN.sin.default, angle)),
    )


def _raised(w: PartWriter, base: ComplexParts, exponent: ComplexParts) -> ComplexParts:
    """A power by the logarithm; 0 to a power with a positive real part is 0."""
    return exponential(w, product(w, exponent, logarithm(w, base)))


def _power(w: PartWriter, given: Given) -> ComplexParts:
    base, exponent = w.parts(given["self"]), given["exponent"]
    if is_short_power(exponent):
        return power(w, base, int(exponent))
    if is_short_power(-exponent) if isinstance(exponent, (int, float)) else False:
        return quotient(w, ComplexParts(1.0, 0.0), power(w, base, int(-exponent)))
    if exponent == 0:
        return ComplexParts(1.0, 0.0)
    if exponent == 0.5:
        return root(w, base)
    if exponent == -0.5:
        return _reciprocal_root(w, base)
    return _raised(w, base, w.parts(exponent))


def _power_of_tensors(w: PartWriter, given: Given) -> ComplexParts:
    base, exponent = w.parts(given["self"]), w.parts(given["exponent"])
    like = cast(Node, exponent.re).meta["val"]
    whole = [ComplexParts(*(p if isinstance(p, Node) else w.node(p, like) for p in z)) for z in (base, exponent)]
    return _raised(w, *whole)


def _norm(w: PartWriter, given: Given) -> Node:
    size = absolute(w, w.parts(given["self"]))
    return w(_ATEN.linalg_vector_norm.default, size, given["ord"], given["dim"], given["keepdim"])


def _reduced_truth(target: Any) -> Rule:
    def written(w: PartWriter, given: Given) -> Node:
        others = [value for name, value in given.items() if name != "self"]
        return w(target, truth(w, w.parts(given["self"])), *others)

    return written


def _logical(target: Any) -> Rule:
    def written(w: PartWriter, given: Given) -> Node:
        pairs = (w.parts(given["self"]), w.parts(given["other"]))
        return w(target, *(truth(w, z) if isinstance(z.im, Node) else cast(Node, z.re) for z in pairs))

    return written


_OF_ONE: dict[Any, Any] = {
    _ATEN.abs.default: absolute,
    _ATEN.angle.default: _angle,
    _ATEN.exp.default: exponential,
    _ATEN.exp2.default: _exponential_of_two,
    _ATEN.log.default: logarithm,
    _ATEN.log2.default: _scaled_logarithm(2),
    _ATEN.log10.default: _scaled_logarithm(10),
    _ATEN.sqrt.default: root,
    _ATEN.rsqrt.default: _reciprocal_root,
    _ATEN.sinh.default: _sinh,
    _ATEN.cosh.default: _cosh,
    _ATEN.tanh.default: _tanh,
    _ATEN.sin.default: _sin,
    _ATEN.cos.default: _cos,
    _ATEN.tan.default: _tan,
    _ATEN.sigmoid.default: _sigmoid,
    _ATEN.silu.default: _silu,
    _ATEN.sgn.default: _sign,
    _ATEN.isnan.default: _either(_ATEN.isnan.default, _ATEN.logical_or.default),
    _ATEN.isinf.default: _either(_ATEN.isinf.default, _ATEN.logical_or.default),
    _ATEN.isfinite.default: _either(_ATEN.isfinite.default, _ATEN.logical_and.default),
    _ATEN.logical_not.default: _is_zero,
}


def _of_one(function: Any) -> Rule:
    return lambda w, given: function(w, w.parts(given["self"]))


RULES: dict[Any, Rule] = {target: _of_one(function) for target, function in _OF_ONE.items()} | {
    _ATEN.polar.default: _polar,
    _ATEN.pow.Tensor_Scalar: _power,
    _ATEN.pow.Tensor_Tensor: _power_of_tensors,
    _ATEN.pow.Scalar: _power_of_tensors,
    _ATEN.linalg_vector_norm.default: _norm,
    _ATEN.logical_and.default: _logical(_ATEN.logical_and.default),
    _ATEN.logical_or.default: _logical(_ATEN.logical_or.default),
    _ATEN.logical_xor.default: _logical(_ATEN.logical_xor.default),
    **{t: _reduced_truth(t) for t in (_ATEN.any.default, _ATEN.any.dim, _ATEN.any.dims, _ATEN.all.default)},
    **{t: _reduced_truth(t) for t in (_ATEN.all.dim, _ATEN.all.dims, _ATEN.count_nonzero.dim_IntList)},
    _ATEN.count_nonzero.default: _reduced_truth(_ATEN.count_nonzero.default),
}
__all__ = ["RULES", "absolute", "exponential", "logarithm", "root", "scaled", "truth"]
