"""Parts of function approximations: polynomials, signs, and a logarithm that is exact near 1.

Coefficients in this folder are minimax fits of our own (Lawson's iteration on Chebyshev points against double
precision); each function states its error as `tolerance` (exact arithmetic) and `ulps` (DL16).

Decision: docs/decisions/0065-forms-that-keep-the-relative-error.md
"""

from __future__ import annotations

from collections.abc import Sequence

from spyre_mlir.ops.build import Build
from spyre_mlir.ops.value import Value


def polynomial(x: Value, coefficients: Sequence[float]) -> Value:
    """c0 + c1 x + c2 x² + …, the highest power first (Horner): two kernels per power."""
    *rest, second, highest = coefficients
    out = x * highest + second
    for c in reversed(rest):
        out = x * out + c
    return out


def with_sign_of(x: Value, magnitude: Value, *, keeps_zero: bool = False) -> Value:
    """`magnitude` where x is 0 or more, else its negative; of a function that `keeps_zero`, zero is x itself."""
    out = x.lt(0).where(-magnitude, magnitude)
    return x.eq(0).where(x, out) if keeps_zero else out


def has_minus(b: Build, x: Value) -> Value:
    """1 where x is below 0 or a negative zero, whose inverse is minus infinity; in DL16 that inverse has no sign."""
    below = x.lt(0)
    if not x.is_float:
        return below
    return b.call("logical_or", below, x.reciprocal().lt(0))


def log_of_one_plus(x: Value) -> Value:
    """log(1 + x), exact near 0: the rounding error of 1 + x is added again.

    With u = 1 + x rounded, log(1 + x) = log(u) + (x - (u - 1)) / u up to the square of the last term.
    """
    u = x + 1.0
    difference = u - 1.0
    lost = (x - difference) / u
    # Nothing was lost where the difference is x, which holds for infinity and -1 too.
    lost = difference.eq(x).where(0.0, lost)
    return u.log() + lost


def log_of_one_plus_exp(x: Value) -> Value:
    """log(1 + e^x) without overflow; for large negative x it is e^x."""
    e = (-abs(x)).exp()
    u = e + 1.0
    lost = (e - (u - 1.0)) / u
    small = u.log() + lost
    return x.maximum(0.0) + small
