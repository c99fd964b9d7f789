"""Arithmetic on indices, on the host: the operators that a check of computed indices repeats.

Each gives what eager gives, of integers of 64 bits and of truth values; those of `FLOAT_STEPS` also of floats of 32 and
64 bits, as far as one rounding leaves no choice. Arguments have the names of torch's schema. Steps that read at indices
take indices outside for the nearest ones: they are refused by a check of their own.

Decision: docs/decisions/0244-the-host-repeats-how-indices-are-made.md
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import DTypeLike

from spyre_mlir.ops.helpers.index_moves import MOVES, MOVES_BY_ONE, Array, Step

Given = Mapping[str, Any]
_BITS = 64


def _over(function: Step) -> Step:
    """A reduction over some dimensions, all of them if none is named."""

    def reduced(self: Array, dim: Sequence[int] | int | None = None, keepdim: bool = False) -> Array:
        axes = None if dim is None or dim == () else dim if isinstance(dim, int) else tuple(dim)
        return function(self, axis=axes if self.ndim else None, keepdims=keepdim)

    return reduced


def _divided(self: Array, other: Array, rounding_mode: str | None = "floor") -> Array:
    if rounding_mode is None:
        return np.true_divide(self, other)
    if rounding_mode == "trunc" and np.result_type(self, other).kind == "f":
        return np.trunc(np.true_divide(self, other))
    quotient = np.floor_divide(self, other)
    if rounding_mode == "floor":
        return quotient
    return quotient + ((np.remainder(self, other) != 0) & (quotient < 0))


def _quotient(self: Array, other: Array, rounding_mode: str | None = None) -> Array:
    return _divided(self, other, rounding_mode)


def _clamped(self: Array, min: Array | None = None, max: Array | None = None) -> Array:
    least = self if min is None else np.maximum(self, min)
    return least if max is None else np.minimum(least, max)


def _where(condition: Array, self: Array, other: Array) -> Array:
    return np.where(condition, self, other)


def _counted(self: Array, dim: int) -> Array:
    return np.cumsum(self, dim if self.ndim else None, dtype=np.int64).reshape(self.shape)


def _arange(end: int, start: int = 0, step: int = 1) -> Array:
    return np.arange(start, end, step)


def _full(size: Sequence[int], fill_value: float) -> Array:
    return np.full(size, fill_value)


def _full_like(self: Array, fill_value: float) -> Array:
    return np.full(self.shape, fill_value)


def _filled(self: Array, value: Array) -> Array:
    return np.broadcast_to(value, self.shape)


def _new_full(self: Array, size: Sequence[int], fill_value: float) -> Array:  # noqa: ARG001
    return np.full(size, fill_value)


def _masked(self: Array, mask: Array, value: Array) -> Array:
    return np.where(mask, value, self)


def _added(self: Array, other: Array, alpha: int = 1) -> Array:
    return self + other * alpha


def _taken_off(self: Array, other: Array, alpha: int = 1) -> Array:
    return self - other * alpha


def _taken_from(self: Array, other: Array, alpha: int = 1) -> Array:
    return other - self * alpha


def _raised(self: Array, exponent: int) -> Array:
    return np.power(np.asarray(self, np.int64), exponent)


def _shifted_left(self: Array, other: Array) -> Array:
    """Torch shifts everything out where numpy leaves the result to the processor."""
    return np.where((other >= 0) & (other < _BITS), np.left_shift(self, np.clip(other, 0, _BITS - 1)), 0)


def _shifted_right(self: Array, other: Array) -> Array:
    return np.right_shift(self, np.where((other >= 0) & (other < _BITS), other, _BITS - 1))


def _sorted(self: Array, dim: int = -1, descending: bool = False) -> Array:
    return np.take_along_axis(self, _order(self, dim, descending), dim) if self.ndim else self


def _order(self: Array, dim: int = -1, descending: bool = False) -> Array:
    """Places in order; of equal numbers the first one is first."""
    if not self.ndim:
        return np.zeros((), np.int64)
    if not descending:
        return np.argsort(self, dim, stable=True)
    backwards = np.argsort(np.flip(self, dim), dim, stable=True)
    return np.flip(self.shape[dim] - 1 - backwards, dim)


def _place_of(function: Step) -> Step:
    def place(self: Array, dim: int | None = None, keepdim: bool = False) -> Array:
        return function(self, axis=dim, keepdims=keepdim) if self.ndim else np.zeros((), np.int64)

    return place


def _bucket(self: Array, boundaries: Array, right: bool = False) -> Array:
    return np.searchsorted(boundaries, self, "right" if right else "left")


def _bucket_of(sorted_sequence: Array, self: Array, right: bool = False) -> Array:
    """Of several dimensions, each row of numbers has a row of boundaries of its own."""
    if sorted_sequence.ndim == 1:
        return _bucket(self, sorted_sequence, right)
    found = np.empty(self.shape, np.int64)
    for row in np.ndindex(self.shape[:-1]):
        found[row] = _bucket(self[row], sorted_sequence[row], right)
    return found


def _signs(self: Array) -> Array:
    """Of truth values too, of which numpy has none."""
    return np.sign(self + 0)


# Of `self` and one more argument, and its name.
_COMPARING: Mapping[str, tuple[str, Step]] = {
    "eq": ("other", np.equal),
    "ne": ("other", np.not_equal),
    "lt": ("other", np.less),
    "le": ("other", np.less_equal),
    "gt": ("other", np.greater),
    "ge": ("other", np.greater_equal),
}
_PAIRS: Mapping[str, tuple[str, Step]] = {
    **_COMPARING,
    **MOVES_BY_ONE,
    "mul": ("other", np.multiply),
    "remainder": ("other", np.remainder),
    "fmod": ("other", np.fmod),
    "minimum": ("other", np.minimum),
    "maximum": ("other", np.maximum),
    "bitwise_and": ("other", np.bitwise_and),
    "bitwise_or": ("other", np.bitwise_or),
    "bitwise_xor": ("other", np.bitwise_xor),
    "logical_and": ("other", np.logical_and),
    "logical_or": ("other", np.logical_or),
    "logical_xor": ("other", np.logical_xor),
    **dict.fromkeys(("__lshift__", "bitwise_left_shift"), ("other", _shifted_left)),
    **dict.fromkeys(("__rshift__", "bitwise_right_shift"), ("other", _shifted_right)),
}
# Of `self` alone; other arguments do not matter.
_CONVERTING = ("alias", "detach", "contiguous", "clone", "lift_fresh_copy", "_to_copy", "to")
_ROUNDING: Mapping[str, Step] = {
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
    "trunc": np.trunc,
}
_OF_ONE: Mapping[str, Step] = {
    "neg": np.negative,
    "abs": np.abs,
    "sign": _signs,
    "bitwise_not": np.invert,
    "logical_not": np.logical_not,
    "zeros_like": np.zeros_like,
    "ones_like": np.ones_like,
    **_ROUNDING,
    **dict.fromkeys(_CONVERTING, np.asarray),
}
_NAMED: Mapping[str, Step] = {
    **MOVES,
    "add": _added,
    "sub": _taken_off,
    "rsub": _taken_from,
    "pow": _raised,
    "floor_divide": _divided,
    "div": _quotient,
    **dict.fromkeys(("clamp", "clamp_min", "clamp_max"), _clamped),
    "masked_fill": _masked,
    "cumsum": _counted,
    "sum": _over(partial(np.sum, dtype=np.int64)),
    "amax": _over(np.max),
    "amin": _over(np.min),
    "any": _over(np.any),
    "all": _over(np.all),
    "argmax": _place_of(np.argmax),
    "argmin": _place_of(np.argmin),
    "sort": _sorted,
    "argsort": _order,
    "where": _where,
    "bucketize": _bucket,
    "searchsorted": _bucket_of,
    "arange": _arange,
    "full": _full,
    "full_like": _full_like,
    "fill": _filled,
    "new_full": _new_full,
    "zeros": partial(_full, fill_value=0),
    "ones": partial(_full, fill_value=1),
    "new_zeros": partial(_new_full, fill_value=0),
    "new_ones": partial(_new_full, fill_value=1),
}
STEPS = (*_PAIRS, *_OF_ONE, *_NAMED)

# Operands whose type is that of the result.
_OPERANDS = ("self", "other", "min", "max", "value")
# Steps that eager and numpy compute alike of floats: nothing is rounded more than once, or in an order of its own.
FLOAT_STEPS = frozenset(
    {
        *("add", "sub", "rsub", "mul", "div", "floor_divide", "remainder", "fmod", "neg", "abs", "minimum", "maximum"),
        *("clamp", "clamp_min", "clamp_max"),
        *("where", "masked_fill", "zeros", "ones", "full", "zeros_like", "ones_like", "full_like", "fill"),
        *("new_zeros", "new_ones", "new_full"),
        *("amax", "amin", "argmax", "argmin", "bucketize", "searchsorted", "logical_not", "sort", "argsort"),
        *(*_ROUNDING, *_COMPARING, *_CONVERTING, *MOVES, *MOVES_BY_ONE),
    }
)


def _result(name: str, given: Given) -> Array:
    if name in _OF_ONE:
        return _OF_ONE[name](given["self"])
    if name in _PAIRS:
        other, function = _PAIRS[name]
        return function(given["self"], given[other])
    return _NAMED[name](**given)


def takes(name: str, given: Collection[str]) -> bool:
    """Return whether a step takes these arguments: an overload of the operator may have others.

    Args:
        name: of the operator, without overload.
        given: names of arguments.
    """
    if name in _ROUNDING:
        return set(given) == {"self"}
    if name in _OF_ONE:
        return "self" in given
    if name in _PAIRS:
        return set(given) == {"self", _PAIRS[name][0]}
    try:
        inspect.signature(_NAMED[name]).bind(**dict.fromkeys(given))
    except TypeError:
        return False
    return True


def result_of(name: str, given: Given, kind: DTypeLike) -> Array:
    """Return the result of a step, as a float, int64 or bool.

    Args:
        name: of the operator, without overload.
        given: its arguments by name; arrays of floats, int64 and bool among them.
        kind: of the result in the program; narrow integers wrap around.
    """
    wanted = np.dtype(kind)
    whole = wanted.kind in "iub"
    with np.errstate(all="ignore"):
        if not whole:  # operands are converted first, as eager does
            given = {key: _as_float(value, wanted) if key in _OPERANDS else value for key, value in given.items()}
        elif name in _COMPARING and type(given["other"]) is float and given["self"].dtype.kind in "iub":
            given = {**given, "self": given["self"].astype(np.float32)}
        found = np.asarray(_result(name, given)).astype(wanted)
    return found.astype(np.int64) if wanted.kind in "iu" else found


def _as_float(value: object, kind: np.dtype[np.generic]) -> object:
    if not isinstance(value, np.ndarray):
        return value
    given = cast("Array", value)
    return given if given.dtype == np.bool_ else given.astype(kind)


__all__ = ["FLOAT_STEPS", "STEPS", "result_of", "takes"]
