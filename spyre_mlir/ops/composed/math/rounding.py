"""Rounding to integers; integers stay unchanged."""

from __future__ import annotations

from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.table import Sample
from spyre_mlir.ops.value import Value


def nearest_even(x: Value) -> Value:
    """The nearest integer, ties to even: x + 0.5 is not exact where x is small or large."""
    below = x.floor()
    rest = x - below
    # Not below + 1: what is rounded up to zero is a negative zero.
    above = -(-1.0 - below)
    even = (above * 0.5).floor() * 2.0
    out = rest.lt(0.5).where(below, even)
    return rest.gt(0.5).where(above, out)


@ATEN.composed(aten=["ceil"], promote=True, ulps=1)
def ceil(self: Value) -> Value:
    """The smallest integer not below the element."""
    return -(-self).floor() if self.is_float else self.clone()


@ATEN.composed(aten=["trunc", "fix"], promote=True, ulps=1)
def trunc(self: Value) -> Value:
    """The element without its fraction."""
    if not self.is_float:
        return self.clone()
    above = -(-self).floor()
    return self.lt(0).where(above, self.floor())


@ATEN.composed(aten=["round"], promote=True, ulps=1)
def round(self: Value) -> Value:
    """The nearest integer, ties to even."""
    return nearest_even(self) if self.is_float else self.clone()


@ATEN.composed(aten=["round.decimals"], promote=True, ulps=2)
def round_decimals(b: Build, self: Value, *, decimals: int) -> Value:
    """The nearest multiple of 10 to the -decimals."""
    if not self.is_float:
        return self.clone()
    factor = 10.0 ** abs(decimals)
    there, back = ("mul.Tensor", "div.Tensor") if decimals >= 0 else ("div.Tensor", "mul.Tensor")
    return b.call(back, nearest_even(b.rounded(b.call(there, self, factor))), factor)


for _entry in (ceil, trunc, round):
    ATEN.samples(_entry, Sample(((3, 65),), low=-9.0, high=9.0))
ATEN.samples(
    round_decimals,
    Sample(((3, 65),), {"decimals": 1}, low=-9.0, high=9.0),
    Sample(((3, 65),), {"decimals": -1}, low=-99.0, high=99.0),
)
