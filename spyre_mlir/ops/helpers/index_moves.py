"""Steps of computed indices that move numbers, or read at them, and compute none.

Decision: docs/decisions/0244-the-host-repeats-how-indices-are-made.md
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Step = Callable[..., Array]


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
    return self.reshape((*self.shape[:first], prod(self.shape[first : last + 1]), *self.shape[last + 1 :]))


def _turned(self: Array) -> Array:
    return self.T


def _rolled(self: Array, shifts: int | Sequence[int], dims: int | Sequence[int] = ()) -> Array:
    return np.roll(self, shifts, None if dims == () else dims)


def _padded(self: Array, pad: Sequence[int], value: float = 0) -> Array:
    ends = [(0, 0)] * (self.ndim - len(pad) // 2) + [*zip(pad[::2], pad[1::2], strict=True)][::-1]
    parts = (slice(max(-a, 0), n - max(-b, 0)) for n, (a, b) in zip(self.shape, ends, strict=True))
    return np.pad(self[tuple(parts)], [(max(a, 0), max(b, 0)) for a, b in ends], constant_values=value)


def _repeated(self: Array, repeats: int, dim: int | None = None) -> Array:
    return np.repeat(self, repeats, dim)


def _joined(tensors: Sequence[Array], dim: int = 0) -> Array:
    return np.concatenate([t for t in tensors if t.shape != (0,)], dim)


def _stacked(tensors: Sequence[Array], dim: int = 0) -> Array:
    return np.stack(tensors, dim)


def _reshaped(self: Array, shape: Sequence[int]) -> Array:
    return self.reshape(shape)


def _transposed(self: Array, dim0: int, dim1: int) -> Array:
    return np.swapaxes(self, dim0, dim1)


def _selected(self: Array, dim: int, index: int) -> Array:
    return np.take(self, index, dim)


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
    places: list[Array] = [*np.indices(index.shape, sparse=True)]
    places[dim] = _inside(index, self.shape[dim])
    return self[tuple(places)]


def _looked_up(weight: Array, indices: Array) -> Array:
    return weight[_inside(indices, weight.shape[0])]


def _sliced_over(
    self: Array, src: Array, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Array:
    written = self.copy()
    _slice(written, dim, start, end, step)[...] = src
    return written


def _selected_over(self: Array, src: Array, dim: int, index: int) -> Array:
    written = self.copy()
    np.moveaxis(written, dim, 0)[index] = src
    return written


def _copied_over(self: Array, src: Array) -> Array:
    return np.broadcast_to(src, self.shape)


# Of `self` and one more argument, and its name.
MOVES_BY_ONE: Mapping[str, tuple[str, Step]] = {
    "view": ("size", np.reshape),
    "_unsafe_view": ("size", np.reshape),
    "unsqueeze": ("dim", np.expand_dims),
    "repeat": ("repeats", np.tile),
    "permute": ("dims", np.transpose),
    "flip": ("dims", np.flip),
}
MOVES: Mapping[str, Step] = {
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
    "slice_scatter": _sliced_over,
    "select_scatter": _selected_over,
    "copy": _copied_over,
    "index": _indexed,
    "index_select": _taken_rows,
    "gather": _gathered,
    "embedding": _looked_up,
}

__all__ = ["MOVES", "MOVES_BY_ONE", "Array", "Step"]
