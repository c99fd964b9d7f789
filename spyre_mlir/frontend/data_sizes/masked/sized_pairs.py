"""Pairs of rows in one dimension, where data decides both sizes: `scores.reshape(n * n)`, and back.

Padding of the inner size would come to stand between rows of the caller. The size of the pairs is one of its own, and
each place of the result selects a pair by its number, or each pair its place.

Decision: docs/decisions/0214-results-of-other-sizes-have-sizes-of-their-own.md
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

import torch
from torch.fx import Node

from spyre_mlir.frontend.data_sizes.masked import resized
from spyre_mlir.frontend.data_sizes.masked.masking import Masking, replace, shape_of_node, symbol_of

aten = torch.ops.aten


@dataclass(frozen=True)
class _Pairs:
    """Two neighbouring dimensions in one shape, which are one dimension in another.

    Attributes:
        at: the first of them, and the one that they are.
        extents: their sizes.
        together: the size of both.
    """

    at: int
    extents: tuple[object, object]
    together: object

    @staticmethod
    def of(apart: Sequence[object], together: Sequence[object]) -> _Pairs | None:
        """Return what a shape has in one dimension of another one; None if it is anything else."""
        if len(apart) != len(together) + 1:
            return None
        for at, extent in enumerate(together):
            first, other = (symbol_of(n) for n in apart[at : at + 2])
            rest = [*apart[:at], *apart[at + 2 :]], [*together[:at], *together[at + 1 :]]
            if first is not None and other is not None and symbol_of(extent) == first * other:
                return _Pairs(at, (apart[at], apart[at + 1]), extent) if _are_same(*rest) else None
        return None


def _are_same(shape: Sequence[object], other: Sequence[object]) -> bool:
    return all(isinstance(a, int) and a == b for a, b in zip(shape, other, strict=True))


def merges_pairs(node: Node) -> bool:
    """Return whether a call merges two dimensions of which data decides both sizes."""
    return node.target in resized.MERGING and _Pairs.of(shape_of_node(node.args[0]), shape_of_node(node)) is not None


def merge(masking: Masking, node: Node) -> bool:
    """Merge dimensions beside a size that data decides, or two such; or part them again."""
    return resized.merge(masking, node) or _merge(masking, node) or _part(masking, node)


def _merge(masking: Masking, node: Node) -> bool:
    value = cast(Node, node.args[0])
    pairs = _Pairs.of(shape_of_node(value), shape_of_node(node))
    if pairs is None or not _is_known(masking, pairs):
        return False
    write, known = partial(masking.before, node), value.meta["val"].dtype
    table = masking.filled(node, value, masking.sized(value), 0.0)
    table = write(aten.movedim.intlist, table, [pairs.at, pairs.at + 1], [0, 1])
    hit = write(aten.eq.Tensor, _spread(write, masking.places(node, pairs.together), 2), _numbers(masking, node, pairs))
    hit = _inside(masking, node, hit, pairs)
    chosen = write(aten.where.ScalarOther, _spread(write, hit, len(shape_of_node(node)) - 1), table, 0)
    # One after the other: nothing is known of places that are padding of both.
    rows = write(aten.sum.dim_IntList, write(aten.sum.dim_IntList, chosen, [2]), [1])
    replace(node, write(aten.movedim.int, write(aten.to.dtype, rows, known), 0, pairs.at))
    return True


def _part(masking: Masking, node: Node) -> bool:
    value = cast(Node, node.args[0])
    pairs = _Pairs.of(shape_of_node(node), shape_of_node(value))
    if node.target not in resized.MERGING or pairs is None or not _is_known(masking, pairs):
        return False
    write, known = partial(masking.before, node), value.meta["val"].dtype
    table = masking.filled(node, value, masking.sized(value), 0.0)
    table = write(aten.movedim.int, table, pairs.at, 0)
    places = masking.places(node, pairs.together)
    hit = write(aten.eq.Tensor, _spread(write, _numbers(masking, node, pairs), 1), places)
    hit = write(aten.logical_and.default, hit, masking.of[symbol_of(pairs.together)])
    chosen = write(aten.where.ScalarOther, _spread(write, hit, len(shape_of_node(value)) - 1), table, 0)
    rows = write(aten.to.dtype, write(aten.sum.dim_IntList, chosen, [2]), known)
    replace(node, write(aten.movedim.intlist, rows, [0, 1], [pairs.at, pairs.at + 1]))
    return True


def _is_known(masking: Masking, pairs: _Pairs) -> bool:
    """Whether all sizes have masks, and there are not too many places: each is compared with each."""
    symbols = [symbol_of(extent) for extent in (*pairs.extents, pairs.together)]
    if not all(symbol in masking.of for symbol in symbols):
        return False
    first, other = (masking.bounds.get(symbol, 0) for symbol in symbols[:2])
    return first * other <= resized.MOST_MERGED


def _numbers(masking: Masking, node: Node, pairs: _Pairs) -> Node:
    """The number of each pair of the caller."""
    first, other = (symbol_of(extent) for extent in pairs.extents)
    write = partial(masking.before, node)
    row = write(aten.mul.Tensor, masking.numbers(node, first), masking.count(node, other, torch.int64))
    return write(aten.add.Tensor, _spread(write, row, 1), masking.numbers(node, other))


def _inside(masking: Masking, node: Node, hit: Node, pairs: _Pairs) -> Node:
    """Truth values that are false for pairs of padding."""
    first, other = (masking.of[symbol_of(extent)] for extent in pairs.extents)
    write = partial(masking.before, node)
    hit = write(aten.logical_and.default, hit, _spread(write, first, 1))
    return write(aten.logical_and.default, hit, other)


def _spread(write: partial[Node], value: Node, dims: int) -> Node:
    """A value with more dimensions behind its own."""
    for _ in range(dims):
        value = write(aten.unsqueeze.default, value, -1)
    return value
