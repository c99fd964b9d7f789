"""View methods on numpy arrays: the meaning of view operations at the aten level."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from spyre_mlir.ops.annotations import Lanes, np


class View(Protocol):
    """Operations of the body of a view declaration; `IndexView` and `ArrayView` have all of them."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the view."""
        ...

    def permute(self, dims: tuple[int, ...]) -> View:
        """Reorders the dimensions."""
        ...

    def transpose(self, dim0: int, dim1: int) -> View:
        """Exchanges two dimensions."""
        ...

    def unsqueeze(self, dim: int) -> View:
        """Inserts a dimension of extent 1."""
        ...

    def squeeze(self, dims: tuple[int, ...] | None = None) -> View:
        """Drops dimensions of extent 1."""
        ...

    def expand(self, shape: tuple[int, ...]) -> View:
        """Repeats dimensions of extent 1."""
        ...

    def select(self, dim: int, index: int) -> View:
        """Fixes one dimension and drops it."""
        ...

    def slice(self, dim: int, start: int, end: int, step: int = 1) -> View:
        """Keeps a range of one dimension."""
        ...

    def reshape(self, shape: tuple[int, ...]) -> View:
        """Regroups the dimensions in row-major order."""
        ...


@dataclass(frozen=True)
class ArrayView:
    """A numpy array with the methods of `View`."""

    array: Lanes

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array."""
        return self.array.shape

    def permute(self, dims: tuple[int, ...]) -> ArrayView:
        """Reorders the dimensions."""
        return ArrayView(self.array.transpose(dims))

    def transpose(self, dim0: int, dim1: int) -> ArrayView:
        """Exchanges two dimensions."""
        return ArrayView(self.array.swapaxes(dim0, dim1) if self.array.ndim else self.array)

    def unsqueeze(self, dim: int) -> ArrayView:
        """Inserts a dimension of extent 1."""
        return ArrayView(np.expand_dims(self.array, dim))

    def squeeze(self, dims: tuple[int, ...] | None = None) -> ArrayView:
        """Drops dimensions of extent 1."""
        rank = self.array.ndim
        chosen = range(rank) if dims is None or not rank else [d % rank for d in dims]
        return ArrayView(self.array.squeeze(tuple(d for d in chosen if self.array.shape[d] == 1)))

    def expand(self, shape: tuple[int, ...]) -> ArrayView:
        """Repeats dimensions of extent 1; -1 keeps an extent."""
        own = (1,) * (len(shape) - self.array.ndim) + self.array.shape
        target = tuple(o if t == -1 else t for t, o in zip(shape, own, strict=True))
        return ArrayView(np.broadcast_to(self.array, target))

    def select(self, dim: int, index: int) -> ArrayView:
        """Fixes one dimension and drops it."""
        return ArrayView(self.array.take(index, axis=dim))

    def slice(self, dim: int, start: int, end: int, step: int = 1) -> ArrayView:
        """Keeps a range of one dimension."""
        index: list[slice] = [slice(None)] * self.array.ndim
        index[dim] = slice(start, end, step)
        return ArrayView(self.array[tuple(index)])

    def reshape(self, shape: tuple[int, ...]) -> ArrayView:
        """Regroups the dimensions in row-major order."""
        return ArrayView(self.array.reshape(shape))
