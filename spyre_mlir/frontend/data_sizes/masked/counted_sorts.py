"""Sorts along a size that data decides: the place of an element is the number of those before it.

A network of comparisons, which sorts otherwise, has other steps for each size. To count is the same for all sizes, and
a mask takes padding out of what is counted; so padding comes last, and is cut off. Elements that are equal keep their
order, and NaN is the greatest number, as in torch.

Decision: docs/decisions/0192-a-bound-stands-for-sizes-that-data-decides.md
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

import torch
from torch.fx import Node

aten = torch.ops.aten

Write = Callable[..., Node]


@dataclass(frozen=True)
class CountedSort:
    """A sort of the last dimension of a tensor, written out.

    Attributes:
        write: writes a call in front of the sort.
        mask: of the places along the dimension.
        dtype: the type of the elements.
        descending: whether the greatest element comes first.
    """

    write: Write
    mask: Node
    dtype: torch.dtype
    descending: bool

    def results(self, value: Node, wanted: Node | None = None) -> tuple[Node, Node]:
        """Return the sorted elements, and their places in the tensor.

        Args:
            value: the tensor.
            wanted: the numbers of the elements to return, counted in order; all if it is None.
        """
        write, mask = self.write, self.mask
        length = write(aten.sym_size.int, mask, 0)
        places = write(aten.arange.default, length)
        later, earlier = write(aten.unsqueeze.default, places, -1), write(aten.unsqueeze.default, places, -2)
        before = self._is_before(value, write(aten.lt.Tensor, earlier, later))
        rank = write(aten.sum.dim_IntList, write(aten.logical_and.default, before, mask), [-1])
        numbers = later if wanted is None else write(aten.unsqueeze.default, wanted, -1)
        hit = write(aten.eq.Tensor, write(aten.unsqueeze.default, rank, -2), numbers)
        hit = write(aten.logical_and.default, hit, mask)
        row = write(aten.unsqueeze.default, value, -2)
        if self.dtype.is_floating_point:
            values = write(aten.amax.default, write(aten.where.ScalarOther, hit, row, -inf), [-1])
        else:
            values = write(aten.to.dtype, self._only(hit, row), self.dtype)  # torch adds integers as int64
        return values, self._only(hit, earlier)

    def _only(self, hit: Node, integers: Node) -> Node:
        """The integer at the one place that is hit."""
        return self.write(aten.sum.dim_IntList, self.write(aten.where.ScalarOther, hit, integers, 0), [-1])

    def _is_before(self, value: Node, is_earlier: Node) -> Node:
        """Whether the element of a column comes before that of a row."""
        write = self.write
        mine, other = write(aten.unsqueeze.default, value, -1), write(aten.unsqueeze.default, value, -2)
        first, second = (mine, other) if self.descending else (other, mine)
        less, equal = write(aten.lt.Tensor, first, second), write(aten.eq.Tensor, first, second)
        if self.dtype.is_floating_point:
            first_nan, second_nan = write(aten.ne.Tensor, first, first), write(aten.ne.Tensor, second, second)
            only_second = write(aten.logical_and.default, second_nan, write(aten.logical_not.default, first_nan))
            less = write(aten.logical_or.default, less, only_second)
            both = write(aten.logical_and.default, first_nan, second_nan)
            equal = write(aten.logical_or.default, equal, both)
        return write(aten.logical_or.default, less, write(aten.logical_and.default, equal, is_earlier))


__all__ = ["CountedSort"]
