"""Arithmetic on indices, on the host: the operators that a check of computed indices repeats.

Each gives what eager gives, of integers of 64 bits and of truth values; those of `FLOAT_STEPS` also of floats of 32 and
64 bits, as far as one rounding leaves no choice. Arguments have the names of torch's schema. Steps that read at indices
take indices outside for the nearest ones: they are refused by a check of their own.

Decision: docs/decisions/0244-the-host-repeats-how-indices-are-made.md
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

Array = NDArray[Any]
_BITS = 64


def _sum(self: Array, dim: Sequence[int] | int | None = None, keepdim: bool = False) -> Array:
    axes = None if dim is None or dim == () else dim if isinstance(dim, int) else tuple(dim)
    return np.asarray(np.sum(self, axis=axes, keepdims=keepdim, dtype=np.int64))


def _over(function: Callable[..., Any]) -> Callable[..., Any]:
    """A reduction over some dimensions, all of them if none is named."""

    def reduced(self: Array, dim: Sequence[int] | int | None = None, keepdim: bool = False) -> Any:
        axes = None if dim is None or dim == () else dim if isinstance(dim, int) else tuple(dim)
        return function(self, axis=axes if self.ndim else None, keepdims=keepdim)

    return reduced


def _divided(self: Any, other: Any, rounding_mode: str | None = "floor") -> Any:
    if rounding_mode is None:
        return np.true_divide(self, other)
    if rounding_mode == "trunc" and np.result_type(self, other).kind == "f":
        return np.trunc(np.true_divide(self, other))
    quotient = np.floor_divide(self, other)
    if rounding_mode == "floor":
        return quotient
    return quotient + ((np.remainder(self, other) != 0) & (quotient < 0))


def _quotient(self: Any, other: Any, rounding_mode: str | None = None) -> Any:
    return _divided(self, other, rounding_mode)


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


def _flattened(self: Array, start_dim: int = 0, end_dim: int = -1) -> Array:
    first, last = (d % max(self.ndim, 1) for d in (start_dim, end_dim))
    return self.reshape((*self.shape[:first], -1, *self.shape[last + 1 :]))


def _turned(self: Array) -> Array:
    return self.T


def _rolled(self: Array, shifts: Any, dims: Any = ()) -> Array:
    return np.roll(self, shifts, None if dims == () else dims)


def _padded(self: Array, pad: Sequence[int], value: Any = 0) -> Array:
    ends = [(0, 0)] * (self.ndim - len(pad) // 2) + [*zip(pad[::2], pad[1::2], strict=True)][::-1]
    parts = (slice(max(-a, 0), n - max(-b, 0)) for n, (a, b) in zip(self.shape, ends, strict=True))
    return np.pad(self[tuple(parts)], [(max(a, 0), max(b, 0)) for a, b in ends], constant_values=value)


def _repeated(self: Array, repeats: int, dim: int | None = None) -> Array:
    return np.repeat(self, repeats, dim)


def _joined(tensors: Sequence[Array], dim: int = 0) -> Array:
    return np.concatenate([t for t in tensors if t.shape != (0,)], dim)


def _stacked(tensors: Sequence[Array], dim: int = 0) -> Array:
    return np.stack(tensors, dim)


def _where(condition: Array, self: Any, other: Any) -> Any:
    return cast(Any, np.where)(condition, self, other)


def _counted(self: Array, dim: int) -> Array:
    return np.cumsum(self, dim if self.ndim else None, dtype=np.int64).reshape(self.shape)


def _arange(end: int, start: int = 0, step: int = 1) -> Array:
    return np.arange(start, end, step)


def _full(size: Sequence[int], fill_value: Any) -> Array:
    return np.full(size, fill_value)


def _full_like(self: Array, fill_value: Any) -> Array:
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


def _raised(self: Any, exponent: int) -> Any:
    return np.power(np.asarray(self, np.int64), exponent)


def _shifted_left(self: Any, other: Any) -> Any:
    """Torch shifts everything out where numpy leaves the result to the processor."""
    return np.where((other >= 0) & (other < _BITS), np.left_shift(self, np.clip(other, 0, _BITS - 1)), 0)


def _shifted_right(self: Any, other: Any) -> Any:
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


def _place_of(function: Callable[..., Any]) -> Callable[..., Any]:
    def place(self: Array, dim: int | None = None, keepdim: bool = False) -> Any:
        return function(self, axis=dim, keepdims=keepdim) if self.ndim else np.zeros((), np.int64)

    return place


def _inside(index: Array, size: int) -> Array:
    return np.clip(np.where(index < 0, index + size, index), 0, size - 1)


def _indexed(self: Array, indices: Sequence[Array | None]) -> Array:
    chosen = [slice(None) if i is None else _inside(i, size) for i, size in zip(indices, self.shape, strict=False)]
    return self[tuple(chosen)]


def _taken_rows(self: Array, dim: int, index: Array) -> Array:
    return np.take(self, _inside(index.reshape(-1), self.shape[dim]), dim)


def _gathered(self: Array, dim: int, index: Array) -> Array:
    if not self.ndim or not index.ndim:
        return np.take(self.reshape(-1), _inside(index, self.size))
    places: list[Any] = [*np.indices(index.shape, sparse=True)]
    places[dim] = _inside(index, self.shape[dim])
    return self[tuple(places)]


def _looked_up(weight: Array, indices: Array) -> Array:
    return weight[_inside(indices, weight.shape[0])]


def _bucket(self: Any, boundaries: Array, right: bool = False) -> Any:
    return cast(Any, np.searchsorted)(boundaries, self, "right" if right else "left")


def _bucket_of(sorted_sequence: Array, self: Any, right: bool = False) -> Any:
    return _bucket(self, sorted_sequence, right)


# Of `self` and one more argument, and its name.
_COMPARING: Mapping[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "eq": ("other", np.equal),
    "ne": ("other", np.not_equal),
    "lt": ("other", np.less),
    "le": ("other", np.less_equal),
    "gt": ("other", np.greater),
    "ge": ("other", np.greater_equal),
}
_PAIRS: Mapping[str, tuple[str, Callable[[Any, Any], Any]]] = {
    **_COMPARING,
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
    "view": ("size", np.reshape),
    "_unsafe_view": ("size", np.reshape),
    "unsqueeze": ("dim", np.expand_dims),
    "repeat": ("repeats", np.tile),
    "permute": ("dims", np.transpose),
    "flip": ("dims", np.flip),
}
# Of `self` alone; other arguments do not matter.
_CONVERTING = ("alias", "detach", "contiguous", "clone", "lift_fresh_copy", "_to_copy", "to")
_ROUNDING: Mapping[str, Callable[[Any], Any]] = {
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
    "trunc": np.trunc,
}
_OF_ONE: Mapping[str, Callable[[Any], Any]] = {
    "neg": np.negative,
    "abs": np.abs,
    "sign": np.sign,
    "bitwise_not": np.invert,
    "logical_not": np.logical_not,
    "zeros_like": np.zeros_like,
    "ones_like": np.ones_like,
    **_ROUNDING,
    **dict.fromkeys(_CONVERTING, np.asarray),
}
_NAMED: Mapping[str, Callable[..., Any]] = {
    "add": _added,
    "sub": _taken_off,
    "rsub": _taken_from,
    "pow": _raised,
    "floor_divide": _divided,
    "div": _quotient,
    **dict.fromkeys(("clamp", "clamp_min", "clamp_max"), _clamped),
    "masked_fill": _masked,
    "cumsum": _counted,
    "sum": _sum,
    "amax": _over(np.max),
    "amin": _over(np.min),
    "any": _over(np.any),
    "all": _over(np.all),
    "argmax": _place_of(np.argmax),
    "argmin": _place_of(np.argmin),
    "sort": _sorted,
    "argsort": _order,
    "reshape": _reshaped,
    "flatten": _flattened,
    "squeeze": _squeezed,
    "transpose": _transposed,
    "t": _turned,
    "expand": _expanded,
    "roll": _rolled,
    "slice": _slice,
    "select": _selected,
    "constant_pad_nd": _padded,
    "repeat_interleave": _repeated,
    "cat": _joined,
    "stack": _stacked,
    "where": _where,
    "index": _indexed,
    "index_select": _taken_rows,
    "gather": _gathered,
    "embedding": _looked_up,
    "bucketize": _bucket,
    "searchsorted": _bucket_of,
    "arange": _arange,
    "full": _full,
    "full_like": _full_like,
    "zeros": _zeros,
    "ones": _ones,
}
STEPS = (*_PAIRS, *_OF_ONE, *_NAMED)

_MOVING = (
    *("view", "_unsafe_view", "unsqueeze", "repeat", "permute", "flip", "reshape", "flatten", "squeeze", "transpose"),
    *("t", "expand", "roll", "slice", "select", "constant_pad_nd", "repeat_interleave", "cat", "stack", "index"),
    *("index_select", "gather", "embedding"),
)
# Operands whose type is that of the result.
_OPERANDS = ("self", "other", "min", "max", "value")
# Steps that eager and numpy compute alike of floats: nothing is rounded more than once, or in an order of its own.
FLOAT_STEPS = frozenset(
    {
        *("add", "sub", "rsub", "mul", "div", "floor_divide", "remainder", "fmod", "neg", "abs", "minimum", "maximum"),
        *("clamp", "clamp_min", "clamp_max"),
        *("where", "masked_fill", "zeros", "ones", "full", "zeros_like", "ones_like", "full_like"),
        *("amax", "amin", "argmax", "argmin", "bucketize", "searchsorted", "logical_not", "sort", "argsort"),
        *(*_ROUNDING, *_COMPARING, *_CONVERTING, *_MOVING),
    }
)


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


def result_of(name: str, given: Mapping[str, Any], kind: DTypeLike) -> Array:
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


def _as_float(value: Any, kind: np.dtype[Any]) -> Any:
    given = cast("Array", value)
    return given.astype(kind) if isinstance(value, np.ndarray) and given.dtype != np.bool_ else given


__all__ = ["FLOAT_STEPS", "STEPS", "result_of", "takes"]
