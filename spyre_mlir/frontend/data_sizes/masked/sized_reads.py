"""Reads of rows along a size that data decides: an index counts from the end of the call's rows, and names one of them.

Rows are selected by truth values. What an index out of range means, only eager says: a check of
the program finds it.

Decision: docs/decisions/0192-a-bound-stands-for-sizes-that-data-decides.md
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import cast

import torch
from torch.fx import Node

from spyre_mlir.frontend.data_sizes.masked.masking import Masking, replace, shape_of_node, symbol_of

aten = torch.ops.aten

# Where the arguments of a read are: the index, and the dimension, which is the first one if there is no such argument.
BY_INDEX: dict[object, tuple[int, int | None]] = {
    aten.index_select.default: (2, 1),
    aten.embedding.default: (1, None),
}


def read_by_index(masking: Masking, node: Node) -> bool:
    """Read rows by an index."""
    place, dim = BY_INDEX[node.target]
    return _read(masking, node, 0 if dim is None else cast(int, node.args[dim]), cast(Node, node.args[place]))


def read_rows(masking: Masking, node: Node) -> bool:
    """Read rows by an index that may be negative."""
    value, indices = cast("tuple[Node, Sequence[Node | None]]", node.args)
    dim, index = len(indices) - 1, indices[-1]
    sized = masking.sized(value, (dim,))
    if not sized or any(given is not None for given in indices[:-1]) or index is None:
        return False
    if index.meta["val"].dtype is torch.bool:
        return False
    return _read(masking, node, dim, counted_from_front(masking, node, index, shape_of_node(value)[dim]))


def counted_from_front(masking: Masking, node: Node, index: Node, extent: object) -> Node:
    """Return an index of a dimension whose numbers below 0 are counted from the front, too."""
    write, symbol = partial(masking.before, node), symbol_of(extent)
    if symbol in masking.counts:
        from_end = write(aten.add.Tensor, index, masking.count(node, symbol, index.meta["val"].dtype))
    else:
        from_end = write(aten.add.Scalar, index, extent)
    counted = write(aten.where.self, write(aten.lt.Scalar, index, 0), from_end, index)
    counted.meta["val"] = index.meta["val"]
    return counted


def gather(masking: Masking, node: Node) -> bool:
    """Pick elements by the rows of the caller that an index names."""
    value, dim, index = cast("tuple[Node, int, Node]", node.args[:3])
    sized, shape, named = masking.sized(value, (dim,)), shape_of_node(value), shape_of_node(index)
    for at, symbol in sized.items():
        known, write = value.meta["val"].dtype, partial(masking.before, node)
        row = checked(masking, node, index, shape[at])
        if [str(n) for n in (*shape[:at], *shape[at + 1 :])] != [str(n) for n in (*named[:at], *named[at + 1 :])]:
            node.update_arg(2, row)
            continue
        elements = write(aten.movedim.int, masking.filled(node, value, sized, 0.0), at, -1)
        row = write(aten.unsqueeze.default, write(aten.movedim.int, row, at, -1), -1)
        hit = write(aten.eq.Tensor, row, masking.numbers(node, symbol))
        hit = write(aten.logical_and.default, hit, masking.of[symbol])
        picks = write(aten.where.ScalarOther, hit, write(aten.unsqueeze.default, elements, -2), 0)
        found = write(aten.to.dtype, write(aten.sum.dim_IntList, picks, [-1]), known)
        replace(node, write(aten.movedim.int, found, -1, at))
    return bool(sized)


def select_from_end(masking: Masking, node: Node) -> bool:
    """Read the row that has a number from the end."""
    value, dim, number = cast("tuple[Node, int, object]", node.args)
    sized = masking.sized(value, (dim,))
    if not sized or not isinstance(number, int) or number >= 0:
        return False
    (symbol,) = sized.values()
    row = masking.before(node, aten.add.Scalar, masking.count(node, symbol, torch.int64), number)
    row.meta["val"] = torch.empty((), dtype=torch.int64, device="meta")
    return _read(masking, node, dim, row)


def flip(masking: Masking, node: Node) -> bool:
    """Read rows from the last one to the first."""
    value, dims = cast("tuple[Node, Sequence[int]]", node.args)
    sized = masking.sized(value, dims)
    if len(dims) != 1 or not sized:
        return False
    ((dim, symbol),) = sized.items()
    last = masking.before(node, aten.sub.Scalar, masking.count(node, symbol, torch.int64), 1)
    row = masking.before(node, aten.sub.Tensor, last, masking.places(node, shape_of_node(value)[dim]))
    made = rows_of(masking, node, value, dim, row)
    if made is not None:
        replace(node, made)
    return made is not None


def roll(masking: Masking, node: Node) -> bool:
    """Read rows from another one on, and the first ones behind the last of the caller."""
    value, shifts = cast("tuple[Node, Sequence[object]]", node.args[:2])
    rank, dims = len(shape_of_node(value)), cast("Sequence[int]", node.args[2] if len(node.args) > 2 else ())
    moves = {dim % rank: shift for dim, shift in zip(dims or (0,), shifts, strict=True)}
    sized = masking.sized(value, tuple(moves))
    all_as_one = not dims and rank > 1
    if len(sized) != 1 or all_as_one or len(moves) != len(shifts):
        return False
    ((at, symbol),) = sized.items()
    if not all(isinstance(shift, int) for shift in moves.values()):
        return False
    write, shift = partial(masking.before, node), moves.pop(at)
    count = masking.count(node, symbol, torch.int64)
    by = write(aten.remainder.Tensor, write(aten.full.default, [], shift, dtype=torch.int64), count)
    row = write(aten.sub.Tensor, masking.numbers(node, symbol), by)
    row = write(aten.where.self, write(aten.lt.Scalar, row, 0), write(aten.add.Tensor, row, count), row)
    made = rows_of(masking, node, value, at, row)
    if made is None:
        return False
    if moves:
        made = write(aten.roll.default, made, list(moves.values()), list(moves))
    replace(node, made)
    return True


def rows_of(masking: Masking, node: Node, value: Node, dim: int, row: Node) -> Node | None:
    """Return the rows along a dimension that a line of numbers names; None if another dimension is sized, too."""
    shape = shape_of_node(value)
    ((at, symbol),) = masking.sized(value, (dim,)).items()
    rest = [extent for other, extent in enumerate(shape) if other != at and isinstance(extent, int)]
    if len(rest) != len(shape) - 1:
        return None
    write, known = partial(masking.before, node), value.meta["val"]
    filled = masking.filled(node, value, {at: symbol}, 0.0)
    table = write(aten.reshape.default, write(aten.movedim.int, filled, at, 0), [-1, prod(rest)])
    hit = write(aten.eq.Tensor, write(aten.unsqueeze.default, row, -1), masking.numbers(node, symbol))
    hit = write(aten.logical_and.default, hit, masking.of[symbol])
    rows = picked(masking, node, hit, table, known.dtype)
    return write(aten.movedim.int, write(aten.reshape.default, rows, [-1, *rest]), 0, at)


def picked(masking: Masking, node: Node, hit: Node, table: Node, dtype: torch.dtype) -> Node:
    """Return the rows of a table that truth values pick, added if there are several; its padding is 0."""
    write = partial(masking.before, node)
    # A selection: a product would round integers, and make NaN of 0 times an infinity of another row.
    rows = write(aten.where.ScalarOther, write(aten.unsqueeze.default, hit, -1), table, 0)
    return write(aten.to.dtype, write(aten.sum.dim_IntList, rows, [1]), dtype)


def _read(masking: Masking, node: Node, dim: int, index: Node) -> bool:
    """Replace a call by the rows that an index names; its dimensions stand in the place of the read one."""
    value, shape = cast(Node, node.args[0]), shape_of_node(index)
    sized = masking.sized(value, (dim,))
    if not sized or (len(shape) > 1 and not all(isinstance(extent, int) for extent in shape)):
        return False
    (at,), write = sized, partial(masking.before, node)
    named = write(aten.reshape.default, checked(masking, node, index, shape_of_node(value)[at]), [-1])
    made = rows_of(masking, node, value, at, named)
    if made is None:
        return False
    if not shape:
        made = write(aten.squeeze.dim, made, at)
    elif len(shape) > 1:
        made = write(aten.unflatten.int, made, at, list(shape))
    replace(node, made)
    return True


def checked(masking: Masking, node: Node, index: Node, extent: object) -> Node:
    """Return an index that names rows of the caller, or the first one instead; that no other is meant is checked.

    Args:
        masking: writes.
        node: the call that reads.
        index: counted from the front.
        extent: of the dimension that it names places of.
    """
    known, shape = index.meta["val"], shape_of_node(index)
    write, symbol = partial(masking.before, node), symbol_of(extent)
    if symbol in masking.counts:
        below = write(aten.lt.Tensor, index, masking.count(node, symbol, known.dtype))
    else:
        below = write(aten.lt.Scalar, index, extent)
    exists = write(aten.logical_and.default, below, write(aten.ge.Scalar, index, 0))
    wrong = masking.masked(node, write(aten.logical_not.default, exists), masking.sized(index), len(shape))
    masking.checks.append(write(aten.logical_not.default, write(aten.any.default, wrong)))
    made = write(aten.where.ScalarOther, exists, index, 0)
    made.meta["val"] = known
    return made
