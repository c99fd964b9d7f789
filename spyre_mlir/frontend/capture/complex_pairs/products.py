"""Matrix products and convolutions of complex numbers: four products of parts."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch.fx import Node

from spyre_mlir.frontend.capture.complex_pairs.arithmetic import Given, Rule, scaled, total
from spyre_mlir.frontend.capture.complex_pairs.writer import ComplexParts, PartWriter

_ATEN = torch.ops.aten


def bilinear(w: PartWriter, target: Any, a: ComplexParts, b: ComplexParts) -> ComplexParts:
    """Write a product of two tensors, neither of which is a number."""
    re = w.sub(w(target, a.re, b.re), w(target, a.im, b.im))
    return ComplexParts(re, w.add(w(target, a.re, b.im), w(target, a.im, b.re)))


def _tensors(w: PartWriter, value: Any) -> ComplexParts:
    """The parts of a factor as tensors; a real one has an imaginary part of zeros."""
    parts = w.parts(value)
    like = cast(Node, parts.re).meta["val"]
    return ComplexParts(parts.re, w.node(parts.im, like, like.dtype))


def _product(target: Any, first: str = "self", second: str = "other") -> Rule:
    return lambda w, given: bilinear(w, target, _tensors(w, given[first]), _tensors(w, given[second]))


def _added(target: Any, first: str, second: str) -> Rule:
    """``beta * self + alpha * product``, as `addmm`; a beta of 0 drops what is added, also where that is NaN."""

    def written(w: PartWriter, given: Given) -> ComplexParts:
        made = bilinear(w, target, _tensors(w, given[first]), _tensors(w, given[second]))
        made = scaled(w, made, given["alpha"])
        if given["beta"] == 0:
            return made
        return total(w, scaled(w, w.parts(given["self"]), given["beta"]), made)

    return written


def _with_bias(target: Any) -> Rule:
    """A layer with weights and a bias, which is added to one product of each part."""

    def written(w: PartWriter, given: Given) -> ComplexParts:
        x, weight = _tensors(w, given["input"]), _tensors(w, given["weight"])
        bias = given["bias"]
        re_bias, im_bias = (None, None) if bias is None else _tensors(w, bias)
        others = [value for name, value in given.items() if name not in ("input", "weight", "bias")]

        def call(a: Any, b: Any, c: Any) -> Node:
            return w(target, a, b, c, *others)

        re = w.sub(call(x.re, weight.re, re_bias), call(x.im, weight.im, None))
        return ComplexParts(re, w.add(call(x.re, weight.im, im_bias), call(x.im, weight.re, None)))

    return written


_LAYERS = (
    _ATEN.linear.default,
    _ATEN.convolution.default,
    _ATEN.conv1d.default,
    _ATEN.conv2d.default,
    _ATEN.conv3d.default,
    _ATEN.conv1d.padding,
    _ATEN.conv2d.padding,
    _ATEN.conv3d.padding,
    _ATEN.conv_transpose1d.default,
    _ATEN.conv_transpose2d.input,
    _ATEN.conv_transpose3d.input,
)
RULES: dict[Any, Rule] = {
    _ATEN.matmul.default: _product(_ATEN.matmul.default),
    _ATEN.mm.default: _product(_ATEN.mm.default, "self", "mat2"),
    _ATEN.bmm.default: _product(_ATEN.bmm.default, "self", "mat2"),
    _ATEN.mv.default: _product(_ATEN.matmul.default, "self", "vec"),
    _ATEN.dot.default: _product(_ATEN.matmul.default, "self", "tensor"),
    _ATEN.addmm.default: _added(_ATEN.mm.default, "mat1", "mat2"),
    _ATEN.addmv.default: _added(_ATEN.matmul.default, "mat", "vec"),
    _ATEN.baddbmm.default: _added(_ATEN.bmm.default, "batch1", "batch2"),
    **{target: _with_bias(target) for target in _LAYERS},
}
