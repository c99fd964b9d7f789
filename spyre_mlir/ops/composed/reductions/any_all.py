"""Questions about all elements of a dimension: whether any, or all, are not 0."""

from __future__ import annotations

from typing import Any

from spyre_mlir.ops.annotations import Ints, Lanes
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.reduction_dims import dims_of, folded_shape, is_empty, is_float
from spyre_mlir.ops.table import Sample


def _answer(b: Build, self: Any, truth: Any) -> Any:
    # torch answers bytes with bytes.
    return b.cast(truth, "ui8") if b.element(self) == "ui8" else truth


@ATEN.composed(aten=["any", "any.dim", "any.dims"], ulps=0)
def any_of(b: Build, self: Lanes, *, dim: Ints | None = None, keepdim: bool = False) -> Any:
    """Whether an element over `dim` is not 0."""
    if is_empty(b, self):
        return _answer(b, self, b.full(folded_shape(b, self, dim, keepdim), 0, "i1"))
    if dim == ():
        return _answer(b, self, b.cast(self, "i1"))
    # The magnitude keeps what is not a number, which counts as true.
    size = b.cast(self, "f32") if b.is_bool(self) else b.call("abs", self)
    largest = b.call("amax", size, dim=dims_of(b, self, dim), keepdim=keepdim)
    return _answer(b, self, b.call("ne.Scalar", largest, 0))


@ATEN.composed(aten=["all", "all.dim", "all.dims"], ulps=0)
def all_of(b: Build, self: Lanes, *, dim: Ints | None = None, keepdim: bool = False) -> Any:
    """Whether every element over `dim` is not 0."""
    if is_empty(b, self):
        return _answer(b, self, b.full(folded_shape(b, self, dim, keepdim), 1, "i1"))
    if dim == ():
        return _answer(b, self, b.cast(self, "i1"))
    if is_float(b, self):
        # The smallest magnitude would hide a 0 beside what is not a number.
        size = b.cast(b.call("ne.Scalar", self, 0.0), "f32")
    else:
        size = b.cast(self, "f32") if b.is_bool(self) else b.call("abs", self)
    smallest = b.call("amin", size, dim=dims_of(b, self, dim), keepdim=keepdim)
    return _answer(b, self, b.call("ne.Scalar", smallest, 0))


for _entry in (any_of, all_of):
    ATEN.samples(
        _entry,
        Sample(((3, 65),), {"dim": (-1,), "keepdim": True}),
        Sample(((4, 5, 6),), {"dim": (0, 2)}),
        Sample(((4, 5),)),
        Sample(((),)),
    )
