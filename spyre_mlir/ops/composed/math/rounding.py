"""Rounding to whole numbers; whole numbers are what they are."""

from __future__ import annotations

from typing import Any

from spyre_mlir.ops.annotations import Lanes
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.reduction_dims import is_float
from spyre_mlir.ops.table import Sample


def nearest_even(b: Build, x: Any) -> Any:
    """The nearest whole number, the even one of two: x + 0.5 is no exact number where x is small or large."""
    below = b.call("floor", x)
    rest = b.call("sub.Tensor", x, below)
    # Not below + 1: what is rounded up to zero is a negative zero.
    above = b.call("neg", b.call("sub.Tensor", -1.0, below))
    even = b.call("mul.Tensor", b.call("floor", b.call("mul.Tensor", above, 0.5)), 2.0)
    out = b.call("where.self", b.call("lt.Scalar", rest, 0.5), below, even)
    return b.call("where.self", b.call("gt.Scalar", rest, 0.5), above, out)


@ATEN.composed(aten=["ceil"], promote=True, ulps=1)
def ceil(b: Build, self: Lanes) -> Any:
    """The smallest whole number not below the element."""
    return b.call("neg", b.call("floor", b.call("neg", self))) if is_float(b, self) else b.call("clone", self)


@ATEN.composed(aten=["trunc", "fix"], promote=True, ulps=1)
def trunc(b: Build, self: Lanes) -> Any:
    """The element without what is behind the point."""
    if not is_float(b, self):
        return b.call("clone", self)
    above = b.call("neg", b.call("floor", b.call("neg", self)))
    return b.call("where.self", b.call("lt.Scalar", self, 0), above, b.call("floor", self))


@ATEN.composed(aten=["round"], promote=True, ulps=1)
def round(b: Build, self: Lanes) -> Any:
    """The nearest whole number, the even one of two that are equally near."""
    return nearest_even(b, self) if is_float(b, self) else b.call("clone", self)


@ATEN.composed(aten=["round.decimals"], promote=True, ulps=2)
def round_decimals(b: Build, self: Lanes, *, decimals: int) -> Any:
    """The nearest multiple of 10 to the -decimals."""
    if not is_float(b, self):
        return b.call("clone", self)
    factor = 10.0 ** abs(decimals)
    there, back = ("mul.Tensor", "div.Tensor") if decimals >= 0 else ("div.Tensor", "mul.Tensor")
    return b.call(back, nearest_even(b, b.rounded(b.call(there, self, factor))), factor)


for _entry in (ceil, trunc, round):
    ATEN.samples(_entry, Sample(((3, 65),), low=-9.0, high=9.0))
ATEN.samples(
    round_decimals,
    Sample(((3, 65),), {"decimals": 1}, low=-9.0, high=9.0),
    Sample(((3, 65),), {"decimals": -1}, low=-99.0, high=99.0),
)
