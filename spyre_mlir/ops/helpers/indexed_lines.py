"""Tensors laid out by an index tensor along one dimension, for gathers and scatters.

An index that repeats over some dimensions, as one of rows that is expanded over their columns, names the same places
in all of them: it is compared once, and the columns stand beside each other.

Decision: docs/decisions/0236-rows-that-an-index-names-are-a-product.md
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from spyre_mlir.ops.annotations import Ints
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.slicing import part, permuted, reshaped
from spyre_mlir.ops.value import Value


@dataclass(frozen=True)
class IndexedLines:
    """The dimensions of an index, and of tensors that have its shape but along one dimension.

    Attributes:
        shape: of the index.
        at: the dimension along which it names places.
        repeated: the dimensions over which it repeats, in ascending order.
    """

    shape: Ints
    at: int
    repeated: Ints

    @staticmethod
    def of(b: Build, index: Value, at: int) -> IndexedLines:
        """Ask what is known of an index of one dimension or more."""
        known = b.repeated(index)
        return IndexedLines(index.shape, at, tuple(d for d in known if d != at and index.shape[d] > 1))

    @property
    def batch(self) -> Ints:
        """The dimensions along which the index names places of their own."""
        return tuple(d for d in range(len(self.shape)) if d != self.at and d not in self.repeated)

    @property
    def _order(self) -> Ints:
        return (*self.batch, *self.repeated, self.at)

    def narrowed(self, b: Build, index: Value) -> Value:
        """The index as [*batch, m], or [*batch, 1, m] where it repeats."""
        for dim in self.repeated:
            index = part(b, index, dim, 0, 1)
        return self._joined(permuted(index, self._order))

    def laid(self, value: Value) -> Value:
        """A tensor as [*batch, n], or [*batch, columns, n] where the index repeats."""
        return self._joined(permuted(value, self._order))

    def _joined(self, value: Value) -> Value:
        shape, count = value.shape, len(self.batch)
        return reshaped(value, (*shape[:count], prod(shape[count:-1]), shape[-1])) if self.repeated else value

    def restored(self, value: Value) -> Value:
        """A tensor that `laid` gives, of any extent along the dimension, in the order of the index."""
        kept = (*(self.shape[d] for d in (*self.batch, *self.repeated)), value.shape[-1])
        order = self._order
        return permuted(reshaped(value, kept), [order.index(d) for d in range(len(order))])
