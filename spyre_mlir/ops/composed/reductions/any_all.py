"""Reductions to truth values: any or all elements of a dimension are not 0."""

from __future__ import annotations

from spyre_mlir.ops.annotations import Ints
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.reduction_dims import dims_of, folded_shape, is_empty
from spyre_mlir.ops.table import Sample
from spyre_mlir.ops.value import Value


def _answer(b: Build, self: Value, truth: Value) -> Value:
    # torch answers bytes with bytes.
    return b.cast(truth, "ui8") if self.element == "ui8" else truth


def _zero_or_one(b: Build, self: Value) -> Value:
    """0.0 for an element that is 0, else 1.0. Magnitudes would not do: that of a type's least integer is negative."""
    return b.cast(self if self.is_bool else self.ne(0), "f32")


@ATEN.composed(aten=["any", "any.dim", "any.dims"], ulps=0)
def any_of(b: Build, self: Value, *, dim: Ints | None = None, keepdim: bool = False) -> Value:
    """1 if an element over `dim` is not 0, else 0."""
    if is_empty(self):
        return _answer(b, self, b.full(folded_shape(self, dim, keepdim), 0, "i1"))
    if dim == ():
        return _answer(b, self, b.cast(self, "i1"))
    # The magnitude keeps NaN, which counts as true.
    size = abs(self) if self.is_float else _zero_or_one(b, self)
    largest = size.amax(dims_of(self, dim), keepdim=keepdim)
    return _answer(b, self, largest.ne(0))


@ATEN.composed(aten=["all", "all.dim", "all.dims"], ulps=0)
def all_of(b: Build, self: Value, *, dim: Ints | None = None, keepdim: bool = False) -> Value:
    """1 if no element over `dim` is 0, else 0."""
    if is_empty(self):
        return _answer(b, self, b.full(folded_shape(self, dim, keepdim), 1, "i1"))
    if dim == ():
        return _answer(b, self, b.cast(self, "i1"))
    # With magnitudes of floats, NaN would hide a 0 beside it.
    smallest = _zero_or_one(b, self).amin(dims_of(self, dim), keepdim=keepdim)
    return _answer(b, self, smallest.ne(0))


for _entry in (any_of, all_of):
    ATEN.samples(
        _entry,
        Sample(((3, 65),), {"dim": (-1,), "keepdim": True}),
        Sample(((4, 5, 6),), {"dim": (0, 2)}),
        Sample(((4, 5),)),
        Sample(((),)),
    )
