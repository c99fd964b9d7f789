"""Discrete Fourier transforms as products with matrices of cosines and sines.

A dimension of up to `MOST_DENSE` elements is one product with its matrix. A longer one is taken as rows and columns:
transforms of the columns, factors, transforms of the rows. A longer prime number of elements is a host step.

Decision: docs/decisions/0145-fourier-transforms-are-products.md
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

import torch
from torch.fx import Node

from spyre_mlir.frontend.capture.complex_pairs.arithmetic import Given, Rule, product
from spyre_mlir.frontend.capture.complex_pairs.host_transforms import ALONG
from spyre_mlir.frontend.capture.complex_pairs.writer import REAL_TYPES, ComplexPair, ComplexParts, Part, PartWriter

_ATEN = torch.ops.aten
# Elements of a dimension that is one product: beyond, two shorter ones and a product of elements take less time.
# Predicted for a transform of 128k complex numbers: 260 us against 357 at 2048, 931 against 113 at 4096.
MOST_DENSE = 2048
_POWERS = {0: 0.0, 1: -0.5, 2: -1.0}  # of the number of elements, by torch's number for a norm


class _Transforms:
    """Transforms along single dimensions, of numbers of one type."""

    def __init__(self, w: PartWriter, dtype: torch.dtype, forward: bool) -> None:
        self._w, self._dtype, self._forward = w, dtype, forward

    def along(self, x: ComplexParts, dim: int, kept: int | None = None, scale: float = 1.0) -> ComplexParts:
        """Transform a dimension.

        Args:
            x: of which the imaginary part may be the number 0.
            dim: the dimension, from the end.
            kept: how many of the results are wanted, from the first; None for all.
            scale: a factor.
        """
        count = cast(Node, x.re).meta["val"].shape[dim]
        if count <= MOST_DENSE:
            return self._dense(x, dim, count, count if kept is None else kept, scale)
        factor = _factor(count)
        made = self._by_host(x, dim, scale) if factor is None else self._by_rows(x, dim, factor, scale)
        if kept is None:
            return made
        return ComplexParts(*(self._w(_ATEN.slice.Tensor, part, dim, 0, kept) for part in made))

    def from_half(self, half: ComplexParts, dim: int, count: int, scale: float) -> Node:
        """Transform a dimension that is given by its first half, to real numbers."""
        w = self._w
        if count > MOST_DENSE:
            return cast(Node, self.along(_mirrored(w, half, dim, count), dim, scale=scale).re)
        places = w(_ATEN.arange.start_step, 0, count // 2 + 1, 1, dtype=torch.int64)
        alone = w(_ATEN.eq.Scalar, w(_ATEN.remainder.Scalar, w(_ATEN.mul.Tensor, places, 2), count), 0)
        weights = w(_ATEN.unsqueeze.default, w(_ATEN.where.Scalar, alone, scale, 2 * scale), 1)
        cosines, sines = (
            w(_ATEN.mul.Tensor, self._matrix(f, count, count, 1.0, count // 2 + 1), weights)
            for f in (_ATEN.cos.default, _ATEN.sin.default)
        )
        return cast(Node, w.sub(self._times(half.re, cosines, dim), self._times(half.im, sines, dim)))

    def _dense(self, x: ComplexParts, dim: int, count: int, kept: int, scale: float) -> ComplexParts:
        cosines, sines = (self._matrix(f, count, kept, scale) for f in (_ATEN.cos.default, _ATEN.sin.default))
        re, im = (self._times(part, m, dim) for part, m in ((x.re, cosines), (x.re, sines)))
        if isinstance(x.im, Node):
            re = self._w.sub(re, self._times(x.im, sines, dim))
            im = self._w.add(im, self._times(x.im, cosines, dim))
        return ComplexParts(re, im)

    def _by_rows(self, x: ComplexParts, dim: int, columns: int, scale: float) -> ComplexParts:
        """Element ``rows * i + j`` is at row i, column j: with n = columns * rows, of all ``exp(2πi (ik + …) / n)``."""
        w, parts = self._w, self._nodes(x)
        shape = list(parts[0].meta["val"].shape)
        place = len(shape) + dim
        count = shape[place]
        rows = count // columns
        table = ComplexParts(
            *(w(_ATEN.reshape.default, p, [*shape[:place], columns, rows, *shape[place + 1 :]]) for p in parts)
        )
        inner = self.along(table, dim - 1, scale=scale)
        factors = (self._matrix(f, count, rows, 1.0, columns) for f in (_ATEN.cos.default, _ATEN.sin.default))
        ends = [1] * (-1 - dim)
        turned = product(
            w, inner, ComplexParts(*(w(_ATEN.reshape.default, m, [columns, rows, *ends]) for m in factors))
        )
        outer = self.along(turned, dim)
        return ComplexParts(
            *(self._w(_ATEN.reshape.default, self._w(_ATEN.transpose.int, p, dim - 1, dim), shape) for p in outer)
        )

    def _by_host(self, x: ComplexParts, dim: int, scale: float) -> ComplexParts:
        return ComplexParts(*self._w.several(self._w(ALONG, *self._nodes(x), dim, self._forward, scale)))

    def _nodes(self, x: ComplexParts) -> list[Node]:
        """Both parts as tensors."""
        form = cast(Node, x.re).meta["val"]
        return [p if isinstance(p, Node) else self._w.node(p, form, self._dtype) for p in x]

    def _times(self, x: Part, matrix: Node, dim: int) -> Node:
        """The product of a dimension of a tensor with the first dimension of a matrix."""
        w = self._w
        if dim == -1:
            return w(_ATEN.matmul.default, x, matrix)
        if dim == -2:
            return w(_ATEN.matmul.default, w(_ATEN.transpose.int, matrix, 0, 1), x)
        moved = w(_ATEN.matmul.default, w(_ATEN.transpose.int, x, dim, -1), matrix)
        return w(_ATEN.transpose.int, moved, dim, -1)

    def _matrix(self, function: Any, period: int, columns: int, scale: float, rows: int | None = None) -> Node:
        """``scale * function(±2π r c / period)``, from positions: import computes it once, in double precision."""
        w = self._w
        numbers = [w(_ATEN.arange.start_step, 0, n, 1, dtype=torch.int64) for n in (rows or period, columns)]
        steps = w(_ATEN.mul.Tensor, w(_ATEN.unsqueeze.default, numbers[0], 1), numbers[1])
        turns = w(_ATEN._to_copy.default, w(_ATEN.remainder.Scalar, steps, period), dtype=torch.float64)
        angle = w(_ATEN.mul.Tensor, turns, (-2 if self._forward else 2) * math.pi / period)
        values = w(_ATEN.mul.Tensor, w(function, angle), scale)
        return w(_ATEN._to_copy.default, values, dtype=self._dtype)


def _factor(count: int) -> int | None:
    """The divisor nearest to the root of a number, from below; None for a prime number."""
    return next((d for d in range(math.isqrt(count), 1, -1) if count % d == 0), None)


def _scale(given: Given, shape: Sequence[int], last: int | None = None) -> float:
    """The factor of a transform of all its dimensions."""
    sizes = [shape[dim] for dim in cast("list[int]", given["dim"])]
    if last is not None:
        sizes[-1] = last
    return math.prod(sizes) ** _POWERS[given["normalization"]]


def _ordered(given: Given, form: torch.Tensor) -> list[int]:
    """The dimensions of a transform, from the end."""
    return [dim % form.dim() - form.dim() for dim in given["dim"]]


def _complex_to_complex(w: PartWriter, given: Given) -> ComplexParts:
    form = given["self"].form
    made, scale = _with_known_zero(w, given["self"]), _scale(given, form.shape)
    transforms = _Transforms(w, REAL_TYPES[form.dtype], given["forward"])
    for dim in _ordered(given, form):
        made, scale = transforms.along(made, dim, scale=scale), 1.0
    return made


def _with_known_zero(w: PartWriter, pair: ComplexPair) -> ComplexParts:
    """The parts of a pair, of which the imaginary one may be the number 0."""
    parts = w.known(pair)
    return parts if isinstance(parts.re, Node) and parts.im == 0 else w.parts(pair)


def _real_to_complex(w: PartWriter, given: Given) -> ComplexParts:
    form = given["self"].meta["val"]
    transforms = _Transforms(w, form.dtype, forward=True)
    *others, last = _ordered(given, form)
    kept = form.shape[last] // 2 + 1 if given["onesided"] else None
    made = transforms.along(ComplexParts(given["self"], 0.0), last, kept, _scale(given, form.shape))
    for dim in others:
        made = transforms.along(made, dim)
    return made


def _complex_to_real(w: PartWriter, given: Given) -> Node:
    """The second half of the last dimension is the conjugate of the first, backwards."""
    form, count = given["self"].form, given["last_dim_size"]
    transforms = _Transforms(w, REAL_TYPES[form.dtype], forward=False)
    *others, last = _ordered(given, form)
    made, scale = w.parts(given["self"]), _scale(given, form.shape, count)
    for dim in others:
        made, scale = transforms.along(made, dim, scale=scale), 1.0
    parts = ComplexParts(*(w(_ATEN.slice.Tensor, part, last, 0, count // 2 + 1) for part in made))
    return transforms.from_half(parts, last, count, scale)


def _mirrored(w: PartWriter, half: ComplexParts, dim: int, count: int) -> ComplexParts:
    """All elements of a dimension from the first half; what mirrors itself has no imaginary part."""
    between = slice(1, 1 + (count - 1) // 2)
    re, im = (w(_ATEN.slice.Tensor, part, dim, between.start, between.stop) for part in half)
    backwards = [w(_ATEN.flip.default, part, [dim]) for part in (re, im)]
    zero = w(_ATEN.zeros_like.default, w(_ATEN.slice.Tensor, half.im, dim, 0, 1))
    middle = [] if count % 2 else [zero]
    return ComplexParts(
        w(_ATEN.cat.default, [half.re, backwards[0]], dim),
        w(_ATEN.cat.default, [zero, im, *middle, w(_ATEN.neg.default, backwards[1])], dim),
    )


RULES: dict[Any, Rule] = {
    _ATEN._fft_c2c.default: _complex_to_complex,
    _ATEN._fft_r2c.default: _real_to_complex,
    _ATEN._fft_c2r.default: _complex_to_real,
}
