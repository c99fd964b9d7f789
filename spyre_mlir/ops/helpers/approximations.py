"""What approximations of functions are made of: polynomials, signs, and a logarithm that is exact near 1.

Coefficients in this folder are minimax fits of our own (Lawson's iteration on Chebyshev points against double
precision); each function states its error as `tolerance` (exact arithmetic) and `ulps` (DL16).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.reduction_dims import is_float


def polynomial(b: Build, x: Any, coefficients: Sequence[float]) -> Any:
    """c0 + c1 x + c2 x² + …, the highest power first (Horner): two kernels per power."""
    *rest, highest = coefficients
    out: Any = highest
    for c in reversed(rest):
        out = b.call("add.Tensor", b.call("mul.Tensor", x, out), c)
    return out


def with_sign_of(b: Build, x: Any, magnitude: Any, *, keeps_zero: bool = False) -> Any:
    """`magnitude` where x is 0 or more, else its negative; of a function that `keeps_zero`, zero is x itself."""
    out = b.call("where.self", b.call("lt.Scalar", x, 0), b.call("neg", magnitude), magnitude)
    return b.call("where.self", b.call("eq.Scalar", x, 0), x, out) if keeps_zero else out


def has_minus(b: Build, x: Any) -> Any:
    """Whether x is below 0 or a negative zero, whose inverse is minus infinity; DL16 has no sign of such an inverse."""
    below = b.call("lt.Scalar", x, 0)
    if not is_float(b, x):
        return below
    return b.call("logical_or", below, b.call("lt.Scalar", b.call("reciprocal", x), 0))


def log_of_one_plus(b: Build, x: Any) -> Any:
    """log(1 + x), exact near 0: what 1 + x rounds away is added again.

    With u = 1 + x rounded, log(1 + x) = log(u) + (x - (u - 1)) / u up to the square of the last term.
    """
    u = b.call("add.Tensor", x, 1.0)
    difference = b.call("sub.Tensor", u, 1.0)
    lost = b.call("div.Tensor", b.call("sub.Tensor", x, difference), u)
    # Nothing was lost where the difference is x, which holds for infinity and -1 too.
    lost = b.call("where.self", b.call("eq.Tensor", difference, x), 0.0, lost)
    return b.call("add.Tensor", b.call("log", u), lost)


def log_of_one_plus_exp(b: Build, x: Any) -> Any:
    """log(1 + e^x) without overflow; for large negative x it is e^x."""
    e = b.call("exp", b.call("neg", b.call("abs", x)))
    u = b.call("add.Tensor", e, 1.0)
    lost = b.call("div.Tensor", b.call("sub.Tensor", e, b.call("sub.Tensor", u, 1.0)), u)
    small = b.call("add.Tensor", b.call("log", u), lost)
    return b.call("add.Tensor", b.call("maximum", x, 0.0), small)
