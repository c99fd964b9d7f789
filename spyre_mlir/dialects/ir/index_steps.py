"""Arithmetic on indices, on the host: the operators that a check of computed indices repeats.

Each is exact on integers of 64 bits and truth values, and takes its arguments by the names of torch's schema.

Decision: docs/decisions/0063-positions-are-compared.md
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

Array = NDArray[Any]


def _sum(self: Array, dim: Sequence[int] | int | None = None, keepdim: bool = False) -> Array:
    axes = None if dim is None or dim == () else dim if isinstance(dim, int) else tuple(dim)
    return np.asarray(np.sum(self, axis=axes, keepdims=keepdim, dtype=np.int64))


def _divided(self: Array, other: Any, rounding_mode: str | None = "floor") -> Array:
    quotient = np.floor_divide(self, other)
    if rounding_mode == "floor":
        return quotient
    return quotient + ((np.remainder(self, other) != 0) & (quotient < 0))


def _clamped(self: Array, min: Any = None, max: Any = None) -> Array:
    least = self if min is None else np.maximum(self, min)
    return least if max is None else np.minimum(least, max)


def _slice(self: Array, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Array:
    return self[(slice(None),) * (dim % self.ndim) + (slice(start, end, step),)]


def _expanded(self: Array, size: Sequence[int]) -> Array:
    new = len(size) - self.ndim
    kept = [self.shape[d - new] if extent == -1 else extent for d, extent in enumerate(size)]
    return np.broadcast_to(self, kept)


def _squeezed(self: Array, dim: Sequence[int] | int | None = None) -> Array:
    dims = range(self.ndim) if dim is None else (dim,) if isinstance(dim, int) else dim
    return np.squeeze(self, tuple(d for d in dims if self.ndim and self.shape[d] == 1))


def _rolled(self: Array, shifts: Any, dims: Any = ()) -> Array:
    return np.roll(self, shifts, None if dims == () else dims)


def _joined(tensors: Sequence[Array], dim: int = 0) -> Array:
    return np.concatenate([t for t in tensors if t.shape != (0,)], dim)


def _stacked(tensors: Sequence[Array], dim: int = 0) -> Array:
    return np.stack(tensors, dim)


def _where(condition: Array, self: Any, other: Any) -> Any:
    return cast(Any, np.where)(condition, self, other)


def _counted(self: Array, dim: int) -> Array:
    return np.cumsum(self, dim if self.ndim else None, dtype=np.int64).reshape(self.shape)


def _arange(end: int, start: int = 0, step: int = 1) -> Array:
    return np.arange(start, end, step, dtype=np.int64)


def _full(size: Sequence[int], fill_value: int) -> Array:
    return np.full(size, fill_value)


def _full_like(self: Array, fill_value: int) -> Array:
    return np.full(self.shape, fill_value)


def _zeros(size: Sequence[int]) -> Array:
    return np.zeros(size, np.int64)


def _ones(size: Sequence[int]) -> Array:
    return np.ones(size, np.int64)


def _masked(self: Array, mask: Array, value: Any) -> Any:
    return np.where(mask, value, self)


def _reshaped(self: Array, shape: Sequence[int]) -> Array:
    return self.reshape(shape)


def _transposed(self: Array, dim0: int, dim1: int) -> Array:
    return np.swapaxes(self, dim0, dim1)


def _selected(self: Array, dim: int, index: int) -> Array:
    return np.take(self, index, dim)


def _added(self: Any, other: Any, alpha: int = 1) -> Any:
    return self + other * alpha


def _taken_off(self: Any, other: Any, alpha: int = 1) -> Any:
    return self - other * alpha


def _taken_from(self: Any, other: Any, alpha: int = 1) -> Any:
    return other - self * alpha


# Of `self` and one more argument, and its name.
_PAIRS: Mapping[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "mul": ("other", np.multiply),
    "remainder": ("other", np.remainder),
    "minimum": ("other", np.minimum),
    "maximum": ("other", np.maximum),
    "eq": ("other", np.equal),
    "ne": ("other", np.not_equal),
    "lt": ("other", np.less),
    "le": ("other", np.less_equal),
    "gt": ("other", np.greater),
    "ge": ("other", np.greater_equal),
    "bitwise_and": ("other", np.bitwise_and),
    "bitwise_or": ("other", np.bitwise_or),
    "logical_and": ("other", np.logical_and),
    "logical_or": ("other", np.logical_or),
    "view": ("size", np.reshape),
    "unsqueeze": ("dim", np.expand_dims),
    "repeat": ("repeats", np.tile),
    "permute": ("dims", np.transpose),
    "flip": ("dims", np.flip),
}
# Of `self` alone; other arguments do not matter.
_OF_ONE: Mapping[str, Callable[[Any], Any]] = {
    "neg": np.negative,
    "abs": np.abs,
    "bitwise_not": np.invert,
    "logical_not": np.logical_not,
    "zeros_like": np.zeros_like,
    "ones_like": np.ones_like,
    **dict.fromkeys(("alias", "detach", "contiguous", "clone", "lift_fresh_copy", "_to_copy", "to"), np.asarray),
}
_NAMED: Mapping[str, Callable[..., Any]] = {
    "add": _added,
    "sub": _taken_off,
    "rsub": _taken_from,
    "floor_divide": _divided,
    "div": _divided,
    "clamp": _clamped,
    "clamp_min": _clamped,
    "clamp_max": _clamped,
    "masked_fill": _masked,
    "cumsum": _counted,
    "sum": _sum,
    "reshape": _reshaped,
    "squeeze": _squeezed,
    "transpose": _transposed,
    "expand": _expanded,
    "roll": _rolled,
    "slice": _slice,
    "select": _selected,
    "cat": _joined,
    "stack": _stacked,
    "where": _where,
    "arange": _arange,
    "full": _full,
    "full_like": _full_like,
    "zeros": _zeros,
    "ones": _ones,
}
STEPS = (*_PAIRS, *_OF_ONE, *_NAMED)


def _result(name: str, given: Mapping[str, Any]) -> Any:
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
    if name in _OF_ONE:
        return "self" in given
    if name in _PAIRS:
        return set(given) == {"self", _PAIRS[name][0]}
    try:
        inspect.signature(_NAMED[name]).bind(**dict.fromkeys(given))
    except TypeError:
        return False
    return True


def result_of(name: str, given: Mapping[str, Any], kind: DTypeLike) -> Array:
    """Return the result of a step, as int64 or bool.

    Args:
        name: of the operator, without overload.
        given: its arguments by name; arrays of int64 and bool among them.
        kind: of the result in the program; narrow integers wrap around.
    """
    with np.errstate(all="ignore"):
        found = np.asarray(_result(name, given)).astype(kind)
    return found if found.dtype == np.bool_ else found.astype(np.int64)


__all__ = ["STEPS", "result_of", "takes"]
