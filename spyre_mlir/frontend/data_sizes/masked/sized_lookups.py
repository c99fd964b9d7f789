"""Reads by several indices together, beside a size that data decides, as `y[arange(n), column]`.

Each index selects along its own dimension by truth values that padding never hits; what is selected along one is read
by the next. An index that counts the rows of the caller one by one selects nothing, and costs nothing.

Decision: docs/decisions/0192-a-bound-stands-for-sizes-that-data-decides.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import cast

import torch
from torch.fx import Node

from spyre_mlir.frontend.data_sizes.masked.masking import Masking, replace, shape_of_node, symbol_of
from spyre_mlir.frontend.data_sizes.masked.sized_reads import checked, counted_from_front, read_rows

aten = torch.ops.aten

# Operators that count, and how many arguments are in front of the number that they count to.
_ARGUMENTS_IN_FRONT: dict[object, int] = {aten.arange.default: 0, aten.arange.start: 1, aten.arange.start_step: 1}


def read(masking: Masking, node: Node) -> bool:
    """Read rows by one index, or elements by several."""
    value, indices = cast("tuple[Node, Sequence[Node | None]]", node.args)
    named = {dim: index for dim, index in enumerate(indices) if index is not None}
    if any(index.meta["val"].dtype is torch.bool for index in named.values()):
        return False
    if len(named) == 1:
        return read_rows(masking, node) or _by_many_lines(masking, node, named)
    sized = masking.sized(value, tuple(named))
    is_line = all(len(shape_of_node(index)) == 1 for index in named.values())
    if not (sized or (any(map(masking.sized, named.values())) and not is_line)):
        return False
    replace(node, _selected(masking, node, value, named))
    return True


def _by_many_lines(masking: Masking, node: Node, named: Mapping[int, Node]) -> bool:
    """Read rows of a table by an index of several dimensions, of which data decides one that is not the first."""
    value, ((dim, index),) = cast(Node, node.args[0]), named.items()
    sized = masking.sized(index)
    if masking.sized(value, (dim,)) or len(sized) != 1 or 0 in sized:
        return False
    (at,), write = sized, partial(masking.before, node)
    turned = write(aten.movedim.int, index, at, 0)
    rows = write(aten.index.Tensor, value, [*[None] * dim, turned])
    replace(node, write(aten.movedim.int, rows, dim, dim + at))
    return True


def _selected(masking: Masking, node: Node, value: Node, named: Mapping[int, Node]) -> Node:
    """The elements that indices name together; their dimensions stand where torch puts them."""
    write, known, dims = partial(masking.before, node), value.meta["val"].dtype, list(named)
    rank = max(len(shape_of_node(index)) for index in named.values())
    along = {dim: _counts_along(value, dim, index, rank) for dim, index in named.items()}
    counted = next((dim for dim, at in along.items() if at is not None), None)
    at = 0 if counted is None else cast(int, along[counted])
    left = [dim for dim in dims if dim != counted]
    made = masking.filled(node, value, masking.sized(value, left), 0.0)
    order = left if counted is None else [counted, *left]
    made = write(aten.movedim.intlist, made, order, list(range(len(order))))
    for place in [0] * rank if counted is None else [0] * at + [at + 1] * (rank - 1 - at):
        made = write(aten.unsqueeze.default, made, place)
    inside = len(shape_of_node(value)) - len(dims)
    for number, dim in enumerate(left):
        hit = _hit(masking, node, value, dim, named[dim], rank)
        for _ in range(len(left) - 1 - number + inside):
            hit = write(aten.unsqueeze.default, hit, -1)
        chosen = write(aten.where.ScalarOther, hit, made, 0)
        made = write(aten.to.dtype, write(aten.sum.dim_IntList, chosen, [rank]), known)
    are_neighbours = dims == list(range(dims[0], dims[0] + len(dims)))
    if not are_neighbours or dims[0] == 0:
        return made
    return write(aten.movedim.intlist, made, list(range(rank)), list(range(dims[0], dims[0] + rank)))


def _counts_along(value: Node, dim: int, index: Node, rank: int) -> int | None:
    """The dimension of the result along which an index is the numbers of all rows of a value; None if it is not."""
    shape, symbol = shape_of_node(index), symbol_of(shape_of_node(value)[dim])
    while index.target is aten.unsqueeze.default:
        index = cast(Node, index.args[0])
    start = _ARGUMENTS_IN_FRONT.get(index.target)
    if symbol is None or start is None or len(index.args) != start + 1 or any(index.args[:start]):
        return None
    counted = [at for at, extent in enumerate(shape) if symbol_of(extent) == symbol]
    return rank - len(shape) + counted[0] if counted else None


def _hit(masking: Masking, node: Node, value: Node, dim: int, index: Node, rank: int) -> Node:
    """Whether an index names a place along a dimension, by the dimensions of the result and the place."""
    write, extent = partial(masking.before, node), shape_of_node(value)[dim]
    row = checked(masking, node, counted_from_front(masking, node, index, extent), extent)
    for _ in range(rank - len(shape_of_node(index))):
        row = write(aten.unsqueeze.default, row, 0)
    hit = write(aten.eq.Tensor, write(aten.unsqueeze.default, row, -1), masking.places(node, extent))
    symbol = symbol_of(extent)
    return write(aten.logical_and.default, hit, masking.of[symbol]) if symbol in masking.of else hit
