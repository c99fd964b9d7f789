"""Activation functions that are one hardware function each."""

from __future__ import annotations

from spyre_mlir.ops.annotations import Lanes, Number, erf, np
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.approximations import log_of_one_plus_exp
from spyre_mlir.ops.table import Sample, require
from spyre_mlir.ops.value import Value

_TABLE = "published OpFunc tables of torch-spyre and the interface specification; certain"
_LIST = "published OpFunc list of the interface specification alone; likely"


def _relu(self: Value) -> Value | None:
    """Integers by a maximum, which keeps all 64 bits: the function computes with floats."""
    return None if self.is_float else self.maximum(0)


@ATEN.pointwise(aten=["relu"], opfunc="relufwd", fp32=True, source=_TABLE, decompose=_relu)
def relu(self: Lanes) -> Lanes:
    """The element if positive, else 0."""
    return np.maximum(self, 0.0)


@ATEN.pointwise(aten=["sigmoid"], opfunc="sigmoid", fp32=True, ulps=4, source=_TABLE)
def sigmoid(self: Lanes) -> Lanes:
    """1 / (1 + exp(-x)), without overflow for large negative x."""
    e = np.exp(-np.abs(self))
    return np.where(self >= 0, 1.0, e) / (1.0 + e)


@ATEN.pointwise(aten=["silu"], opfunc="silu", fp32=True, ulps=4, source=_TABLE)
def silu(self: Lanes) -> Lanes:
    """x * sigmoid(x)."""
    return self * sigmoid.meaning(self)


def _gelu(b: Build, self: Value, *, approximate: str) -> Value | None:
    if approximate == "none":
        return None
    # 1 + tanh(u) is 2 * sigmoid(2u); the sum would lose every bit of the result where u is far below zero.
    twice = 2.0 * float(np.sqrt(2.0 / np.pi))
    square = self * self * (0.044715 * twice)
    return self * b.call("sigmoid", self * (square + twice))


@ATEN.pointwise(aten=["gelu"], opfunc="gelufwd", ulps=4, source=_TABLE, decompose=_gelu)
def gelu(self: Lanes, *, approximate: str = "none") -> Lanes:
    """The Gaussian error linear unit.

    Constraints:
        C1: approximate is "none" or "tanh".
    """
    require("C1", approximate in ("none", "tanh"), f'approximate is "{approximate}", expected "none" or "tanh"')
    if approximate == "tanh":
        return 0.5 * self * (1.0 + np.tanh(np.sqrt(2.0 / np.pi) * (self + 0.044715 * self**3)))
    return 0.5 * self * (1.0 + erf(self / np.sqrt(2.0)))


@ATEN.pointwise(aten=["mish"], opfunc="mish", ulps=4, source=_LIST)
def mish(self: Lanes) -> Lanes:
    """x * tanh(log(1 + e^x))."""
    return self * np.tanh(np.logaddexp(0.0, self))


# From here on log(1 + e^x) is x in every format, whatever softplus's threshold says.
_LINEAR = 18.0


def _softplus(self: Value, *, beta: Number, threshold: Number) -> Value | None:
    from spyre_mlir.hw.number_formats.dl16 import round_trip  # numpy, which text tools never need

    if all(float(round_trip([n])[0]) == float(n) for n in (beta, threshold)):
        return None
    # The file would hold other numbers: constants are DL16 codes.
    scaled = self * float(beta)
    out = log_of_one_plus_exp(scaled) / float(beta)
    if threshold >= _LINEAR:
        return out
    return scaled.gt(float(threshold)).where(self, out)


@ATEN.pointwise(
    aten=["softplus"],
    opfunc="softplus",
    ulps=4,
    source=_TABLE,
    op_info={"beta": "softplusBeta", "threshold": "softplusThresh"},
    decompose=_softplus,
)
def softplus(self: Lanes, *, beta: Number = 1, threshold: Number = 20) -> Lanes:
    """log(1 + e^(beta x)) / beta; x where beta x is above the threshold."""
    scaled = self * beta
    return np.where(scaled > threshold, self, np.logaddexp(0.0, scaled) / beta)


for _entry in (relu, sigmoid, silu, gelu):
    ATEN.samples(_entry, Sample(((3, 65),)))
for _entry in (mish, softplus):
    ATEN.samples(_entry, Sample(((3, 65),), low=-7.0, high=7.0))
ATEN.samples(gelu, Sample(((4, 5),), {"approximate": "tanh"}), Sample(((4, 5),), {"approximate": "x"}, breaks="C1"))
ATEN.samples(softplus, Sample(((4, 5),), {"beta": 2.0, "threshold": 1.0}), Sample(((4, 5),), {"beta": 0.3}))
