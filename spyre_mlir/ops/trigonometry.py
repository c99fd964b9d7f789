"""Sine and cosine: reduced to half a period around 0, then an odd polynomial."""

from __future__ import annotations

from math import factorial, pi
from typing import Any

from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.composite import decomposes
from spyre_mlir.ops.lanes import Lanes, np
from spyre_mlir.ops.table import Sample

# Pi in two parts (Cody and Waite). The first has few bits, so that its products with small whole numbers are
# exact in narrow formats too.
PI_HIGH = 3.140625
PI_LOW = pi - PI_HIGH
# The last power of the sine series that is kept; what is left out is below (pi/2)^19 / 19! = 5e-14.
LAST_POWER = 17


@ATEN.composite(aten=["sin"], ulps=16)
def sin(self: Lanes) -> Lanes:
    """The sine, in radians."""
    return np.sin(self)


@ATEN.composite(aten=["cos"], ulps=16)
def cos(self: Lanes) -> Lanes:
    """The cosine, in radians."""
    return np.cos(self)


@decomposes(sin)
def _sin(b: Build, self: Any) -> Any:
    # x = r + k pi with |r| <= pi / 2, so sin x = (-1)^k sin r.
    periods = b.call("floor", b.call("add.Tensor", b.call("mul.Tensor", self, 1.0 / pi), 0.5))
    return _signed_sine(b, self, periods, periods)


@decomposes(cos)
def _cos(b: Build, self: Any) -> Any:
    # x = r + (k - 1/2) pi with |r| <= pi / 2, so cos x = sin (x + pi / 2) = (-1)^k sin r.
    periods = b.call("floor", b.call("add.Tensor", b.call("mul.Tensor", self, 1.0 / pi), 1.0))
    return _signed_sine(b, self, b.call("sub.Tensor", periods, 0.5), periods)


def _signed_sine(b: Build, angle: Any, shift: Any, periods: Any) -> Any:
    """(-1)^periods * sin(angle - shift * pi)."""
    rest = b.call("sub.Tensor", angle, b.call("mul.Tensor", shift, PI_HIGH))
    rest = b.call("sub.Tensor", rest, b.call("mul.Tensor", shift, PI_LOW))
    half = b.call("floor", b.call("mul.Tensor", periods, 0.5))
    odd = b.call("sub.Tensor", periods, b.call("mul.Tensor", half, 2.0))
    sign = b.call("add.Tensor", b.call("mul.Tensor", odd, -2.0), 1.0)
    return b.call("mul.Tensor", b.call("mul.Tensor", _series(b, b.call("mul.Tensor", rest, rest)), rest), sign)


def _series(b: Build, square: Any) -> Any:
    """sin(r) / r as a polynomial of r squared, innermost power first."""
    out: Any = None
    for power in range(LAST_POWER, 0, -2):
        coefficient = (-1.0) ** (power // 2) / factorial(power)
        out = coefficient if out is None else b.call("add.Tensor", b.call("mul.Tensor", square, out), coefficient)
    return out


for _entry in (sin, cos):
    ATEN.samples(_entry, Sample(((3, 65),), low=-7.0, high=7.0))
