"""Arithmetic of complex numbers on their parts.

Infinities: products are torch's, the naive formula for every pair of factors, of which a real one has 0 as its
imaginary part; so a real factor gives 0 * inf = NaN too. Sums and differences are taken part by part.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, cast

import torch
from torch.fx import Node

from spyre_mlir.frontend.capture.complex_pairs.writer import ComplexPair, ComplexParts, Part, PartWriter

_ATEN = torch.ops.aten
Given = Mapping[str, Any]
Rule = Callable[[PartWriter, Given], "ComplexParts | Node | list[ComplexParts]"]
_MOST_FACTORS = 4  # powers up to here are products, as torch's own power is; others go by the logarithm


def product(w: PartWriter, a: ComplexParts, b: ComplexParts) -> ComplexParts:
    """Write a * b."""
    re = w.sub(w.mul(a.re, b.re), w.mul(a.im, b.im))
    return ComplexParts(re, w.add(w.mul(a.re, b.im), w.mul(a.im, b.re)))


def total(w: PartWriter, a: ComplexParts, b: ComplexParts) -> ComplexParts:
    """Write a + b."""
    return ComplexParts(w.add(a.re, b.re), w.add(a.im, b.im))


def difference(w: PartWriter, a: ComplexParts, b: ComplexParts) -> ComplexParts:
    """Write a - b."""
    return ComplexParts(w.sub(a.re, b.re), w.sub(a.im, b.im))


def scaled(w: PartWriter, a: ComplexParts, factor: complex) -> ComplexParts:
    """Write a * factor, of which 1 costs nothing."""
    return a if factor == 1 else product(w, a, w.parts(factor))


def quotient(w: PartWriter, a: ComplexParts, b: ComplexParts) -> ComplexParts:
    """Write a / b without overflow: by the ratio of the smaller to the larger part of b, as torch does.

    A number divides as the product with its reciprocal.
    """
    if not isinstance(b.re, Node) and not isinstance(b.im, Node):
        number = complex(b.re, b.im)
        return product(w, a, w.parts(1 / number if number else complex(math.inf, 0.0)))
    if not isinstance(b.im, Node):
        return product(w, a, ComplexParts(w.div(1.0, b.re), 0.0))
    real = cast(Node, b.re)
    wide = w.compare("ge", w(_ATEN.abs.default, real), w(_ATEN.abs.default, b.im))
    large, small = w.where(wide, real, b.im), w.where(wide, b.im, real)
    zero = w.compare("eq", large, 0.0)
    ratio = w.where(zero, 0.0, w.div(small, large))
    scale = w.where(zero, math.inf, w.div(1.0, w.add(large, w.mul(small, ratio))))
    first = w.add(w.where(wide, a.re, a.im), w.mul(w.where(wide, a.im, a.re), ratio))
    turned = w.neg(a.re)
    second = w.add(w.where(wide, a.im, turned), w.mul(w.where(wide, turned, a.im), ratio))
    return ComplexParts(w.mul(first, scale), w.mul(second, scale))


def conjugate(w: PartWriter, a: ComplexParts) -> ComplexParts:
    """Write the conjugate of a."""
    return ComplexParts(a.re, w.neg(a.im))


def _add(w: PartWriter, given: Given) -> ComplexParts:
    return total(w, w.parts(given["self"]), scaled(w, w.parts(given["other"]), given["alpha"]))


def _sub(w: PartWriter, given: Given) -> ComplexParts:
    return difference(w, w.parts(given["self"]), scaled(w, w.parts(given["other"]), given["alpha"]))


def _rsub(w: PartWriter, given: Given) -> ComplexParts:
    return difference(w, w.parts(given["other"]), scaled(w, w.parts(given["self"]), given["alpha"]))


def _mul(w: PartWriter, given: Given) -> ComplexParts:
    return product(w, w.parts(given["self"]), w.parts(given["other"]))


def _div(w: PartWriter, given: Given) -> ComplexParts:
    return quotient(w, w.parts(given["self"]), w.parts(given["other"]))


def _reciprocal(w: PartWriter, given: Given) -> ComplexParts:
    return quotient(w, ComplexParts(1.0, 0.0), w.parts(given["self"]))


def _addcmul(w: PartWriter, given: Given) -> ComplexParts:
    factors = product(w, w.parts(given["tensor1"]), w.parts(given["tensor2"]))
    return total(w, w.parts(given["self"]), scaled(w, factors, given["value"]))


def _lerp(w: PartWriter, given: Given) -> ComplexParts:
    start = w.parts(given["self"])
    return total(w, start, product(w, difference(w, w.parts(given["end"]), start), w.parts(given["weight"])))


def _same(w: PartWriter, given: Given) -> ComplexParts:
    return w.parts(given["self"])


def _conjugate(w: PartWriter, given: Given) -> ComplexParts:
    return conjugate(w, w.parts(given["self"]))


def _equal(w: PartWriter, given: Given) -> Node:
    a, b = w.parts(given["self"]), w.parts(given["other"])
    return w(_ATEN.logical_and.default, *(_compared(w, "eq", x, y, a) for x, y in zip(a, b, strict=True)))


def _unequal(w: PartWriter, given: Given) -> Node:
    a, b = w.parts(given["self"]), w.parts(given["other"])
    return w(_ATEN.logical_or.default, *(_compared(w, "ne", x, y, a) for x, y in zip(a, b, strict=True)))


def _compared(w: PartWriter, name: str, x: Part, y: Part, like: ComplexParts) -> Node:
    """A comparison of two parts, of which at most one may be a number unless both are."""
    if not isinstance(x, Node) and not isinstance(y, Node):
        x = w.node(x, cast(Node, like.re).meta["val"])
    return w.compare(name, x, y)


def power(w: PartWriter, base: ComplexParts, exponent: int) -> ComplexParts:
    """Write a whole power of at least 1 as products."""
    result = base
    for _ in range(exponent - 1):
        result = product(w, result, base)
    return result


def is_short_power(exponent: object) -> bool:
    """Return whether a power is written as products."""
    return isinstance(exponent, (int, float)) and 1 <= exponent <= _MOST_FACTORS and exponent == int(exponent)


def _prod(w: PartWriter, given: Given) -> ComplexParts:
    """A product of all elements along a dimension, by halves."""
    dim, parts = given["dim"], w.parts(given["self"])
    shape = given["self"].form.shape
    if not shape:
        return parts
    count = shape[dim]

    def cut(z: ComplexParts, start: int, end: int) -> ComplexParts:
        return ComplexParts(*(w(_ATEN.slice.Tensor, part, dim, start, end) for part in z))

    while count > 1:
        half = count // 2
        made = product(w, cut(parts, 0, half), cut(parts, half, 2 * half))
        if count % 2:
            left = cut(parts, count - 1, count)
            made = ComplexParts(*(w(_ATEN.cat.default, list(pair), dim) for pair in zip(made, left, strict=True)))
        parts, count = made, half + count % 2
    if given["keepdim"]:
        return parts
    return ComplexParts(*(w(_ATEN.squeeze.dim, part, dim) for part in parts))


def _prod_of_all(w: PartWriter, given: Given) -> ComplexParts:
    flat = ComplexParts(*(w(_ATEN.reshape.default, part, [-1]) for part in w.parts(given["self"])))
    form = given["self"].form.reshape(-1)
    return _prod(w, {"self": ComplexPair(form, flat), "dim": 0, "keepdim": False})


def _variance(w: PartWriter, given: Given) -> Node:
    named = {name: given[name] for name in ("correction", "keepdim")}
    re, im = (w(_ATEN.var.correction, part, given["dim"], **named) for part in w.parts(given["self"]))
    return cast(Node, w.add(re, im))


def _deviation(w: PartWriter, given: Given) -> Node:
    return w(_ATEN.sqrt.default, _variance(w, given))


def _complex(w: PartWriter, given: Given) -> ComplexParts:  # noqa: ARG001 - as of every rule
    return ComplexParts(given["real"], given["imag"])


RULES: dict[Any, Rule] = {
    _ATEN.add.Tensor: _add,
    _ATEN.add.Scalar: _add,
    _ATEN.sub.Tensor: _sub,
    _ATEN.sub.Scalar: _sub,
    _ATEN.rsub.Scalar: _rsub,
    _ATEN.mul.Tensor: _mul,
    _ATEN.mul.Scalar: _mul,
    _ATEN.div.Tensor: _div,
    _ATEN.div.Scalar: _div,
    _ATEN.reciprocal.default: _reciprocal,
    _ATEN.addcmul.default: _addcmul,
    _ATEN.lerp.Scalar: _lerp,
    _ATEN.lerp.Tensor: _lerp,
    _ATEN._conj.default: _conjugate,
    _ATEN._conj_physical.default: _conjugate,
    _ATEN.conj_physical.default: _conjugate,
    _ATEN.resolve_conj.default: _same,
    _ATEN.resolve_neg.default: _same,
    _ATEN.eq.Tensor: _equal,
    _ATEN.eq.Scalar: _equal,
    _ATEN.ne.Tensor: _unequal,
    _ATEN.ne.Scalar: _unequal,
    _ATEN.prod.dim_int: _prod,
    _ATEN.prod.default: _prod_of_all,
    _ATEN.var.correction: _variance,
    _ATEN.std.correction: _deviation,
    _ATEN.complex.default: _complex,
}
