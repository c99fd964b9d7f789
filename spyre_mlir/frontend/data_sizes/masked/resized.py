"""Calls whose results are longer or shorter than a size that data decides: parts behind each other, padding, slices.

The size of such a result is a size of its own, with a mask and a count. Each of its rows selects one of the
caller's by its place; rows that select none hold what the call fills in. A product multiplies as many rows as the bound
says, those behind the caller's being ones. Where dimensions are merged, padding would come to stand between rows.

Decision: docs/decisions/0214-results-of-other-sizes-have-sizes-of-their-own.md
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any, cast

import torch
from torch.fx import Node

from spyre_mlir.frontend.data_sizes.masked.masking import Masking, argument_of, replace, shape_of_node, symbol_of
from spyre_mlir.frontend.data_sizes.masked.sized_reads import picked

aten = torch.ops.aten

RESIZING = frozenset(
    {
        aten.cat.default,
        aten.constant_pad_nd.default,
        aten.slice.Tensor,
        aten.split_with_sizes.default,
        *(aten.conv1d.default, aten.conv1d.padding, aten.conv2d.default, aten.conv2d.padding),
        *(aten.max_pool2d.default, aten.avg_pool1d.default, aten.avg_pool2d.default, aten.unfold.default),
        *(aten.full.default, aten.zeros.default, aten.ones.default, aten.empty.memory_format),
        *(aten.arange.default, aten.arange.start_step, aten.topk.default),
    }
)
MERGING = frozenset({aten.view.default, aten.reshape.default, aten._unsafe_view.default, aten.flatten.using_ints})
PRODUCTS = frozenset({aten.prod.default, aten.prod.dim_int, aten.cumprod.default})

# Rows of a product behind those of the bound: equal constants are one argument, and have to stay two for each size.
_MORE = 2

# Places of dimensions that are merged: each is compared with each.
MOST_MERGED = 1 << 12

Place = int | Node


def cat(masking: Masking, node: Node) -> bool:
    """Put parts behind each other."""
    parts, dim = cast("Sequence[Node]", node.args[0]), cast(int, argument_of(node, "dim"))
    at = dim % len(shape_of_node(node))
    if any(len(shape_of_node(part)) != len(shape_of_node(node)) for part in parts):  # torch leaves out empty ones
        return False
    extents = [shape_of_node(part)[at] for part in parts]
    known = all(isinstance(extent, int) or symbol_of(extent) in masking.of for extent in extents)
    if not known or all(isinstance(extent, int) for extent in extents) or not is_place(masking, node, at):
        return False
    first: Place = 0
    made: Node | None = None
    for part, extent in zip(parts, extents, strict=True):
        rows = moved(masking, node, part, at, first)
        if rows is None:
            return False
        made = rows if made is None else masking.before(node, aten.add.Tensor, made, rows)
        first = _sum(masking, node, first, extent)
    assert made is not None
    shaped(masking, node, made, at)
    return True


def pad(masking: Masking, node: Node) -> bool:
    """Write rows of one number in front of the caller's, and behind them."""
    value, pads = cast(Node, node.args[0]), cast("Sequence[object]", node.args[1])
    rank = len(shape_of_node(value))
    padded = [rank - 1 - place // 2 for place, count in enumerate(pads) if count != 0]
    sized = masking.sized(value, padded)
    if len(set(padded)) != 1 or not sized or not is_place(masking, node, padded[0]):
        return False
    ((at, symbol),) = sized.items()
    first = pads[2 * (rank - 1 - at)]
    rows = moved(masking, node, value, at, first) if isinstance(first, int) else None
    if rows is None:
        return False
    place = masking.before(node, aten.sub.Scalar, masking.places(node, shape_of_node(node)[at]), first)
    below = masking.before(node, aten.lt.Tensor, place, masking.count(node, symbol, torch.int64))
    inside = masking.before(node, aten.logical_and.default, below, masking.before(node, aten.ge.Scalar, place, 0))
    inside = masking.before(node, aten.unsqueeze.default, inside, -1)
    number = _number(argument_of(node, "value") or 0, value.meta["val"].dtype)
    made = masking.before(node, aten.where.ScalarOther, inside, rows, number)
    shaped(masking, node, made, at)
    return True


def cut(masking: Masking, node: Node) -> bool:
    """Leave out rows in front, or behind, or between."""
    value, at = cast(Node, node.args[0]), cast(int, argument_of(node, "dim")) % len(shape_of_node(node))
    sized, start, step = masking.sized(value, (at,)), argument_of(node, "start"), argument_of(node, "step")
    extent = shape_of_node(node)[at]
    start = 0 if start is None else start
    if isinstance(start, Node):
        return step == 1 and _behind(masking, node, at, start)
    if not sized and step == 1 and start >= 0:
        return _of_known_rows(masking, node, at, start)
    if not sized or not isinstance(step, int) or symbol_of(extent) in sized.values() or (step != 1 and start < 0):
        return False
    if not is_place(masking, node, at) or (isinstance(extent, int) and start >= 0):
        return False
    places: Node | None = None
    if step != 1:
        places = masking.before(node, aten.mul.Scalar, masking.places(node, extent), step)
    first: Place = -start
    if start < 0:  # counted from the end of the caller's rows
        (symbol,) = sized.values()
        from_end = masking.before(node, aten.add.Scalar, masking.count(node, symbol, torch.int64), start)
        first = masking.before(node, aten.neg.default, from_end)
    rows = moved(masking, node, value, at, first, places)
    if rows is None:
        return False
    shaped(masking, node, rows, at)
    return True


def _of_known_rows(masking: Masking, node: Node, at: int, start: int) -> bool:
    """Take as many rows of a tensor as a size says, `x[: n + 1]`: the bound may say more than it has."""
    value, symbol = cast(Node, node.args[0]), symbol_of(shape_of_node(node)[at])
    is_front = start == 0 and symbol is not None and symbol.is_Symbol  # a slice for each size
    if symbol not in masking.of or is_front or not isinstance(shape_of_node(value)[at], int):
        return False
    rows = moved(masking, node, value, at, -start)
    if rows is not None:
        shaped(masking, node, rows, at)
    return rows is not None


def _behind(masking: Masking, node: Node, at: int, start: Node) -> bool:
    """Leave out as many rows in front as a size says."""
    symbol = symbol_of(start.meta.get("val"))
    if symbol not in masking.counts or not is_place(masking, node, at):
        return False
    first = masking.before(node, aten.neg.default, masking.count(node, symbol, torch.int64))
    rows = moved(masking, node, cast(Node, node.args[0]), at, first)
    if rows is not None:
        shaped(masking, node, rows, at)
    return rows is not None


def write_slice(masking: Masking, node: Node) -> bool:
    """Write rows to places behind each other of a tensor, `out[: len(rows)] = rows`."""
    value, source = cast("tuple[Node, Node]", node.args[:2])
    shape, start, step = shape_of_node(value), argument_of(node, "start"), argument_of(node, "step")
    at = cast(int, argument_of(node, "dim")) % len(shape)
    sized, first = masking.sized(source, (at,)), _first_place(masking, node, start, shape[at])
    if not sized or first is None or step != 1 or not is_place(masking, node, at):
        return False
    rows = moved(masking, node, source, at, first)
    if rows is None:
        return False
    (symbol,), write = sized.values(), partial(masking.before, node)
    place = masking.places(node, shape[at])
    if first != 0:
        place = write(aten.sub.Scalar if isinstance(first, int) else aten.sub.Tensor, place, first)
    below = write(aten.lt.Tensor, place, masking.count(node, symbol, torch.int64))
    inside = write(aten.logical_and.default, below, write(aten.ge.Scalar, place, 0))
    inside = write(aten.reshape.default, inside, [-1, *[1] * (len(shape) - 1 - at)])
    rest = [extent for other, extent in enumerate(shape) if other != at]
    laid = write(aten.movedim.int, write(aten.reshape.default, rows, [-1, *rest]), 0, at)
    replace(node, write(aten.where.self, inside, laid, value))
    return True


def _first_place(masking: Masking, node: Node, start: object, extent: object) -> Place | None:
    """The place that a slice begins at, counted from the end if below 0, and 0 if that is in front of the tensor.

    None if sizes of the call do not say it.
    """
    expression = symbol_of(start.meta.get("val")) if isinstance(start, Node) else cast(int, start or 0)
    if expression in masking.counts:
        return masking.count(node, expression, torch.int64)
    if isinstance(expression, int) and expression >= 0:
        return expression
    if not isinstance(extent, int):
        return None
    if isinstance(expression, int):
        return max(0, expression + extent)
    write, place = partial(masking.before, node), None
    for symbol, times in sorted(expression.as_coefficients_dict().items(), key=str):
        if not (symbol == 1 or symbol in masking.counts) or not times.is_Integer:
            return None
        count = write(aten.full.default, [], 1) if symbol == 1 else masking.count(node, symbol, torch.int64)
        part = write(aten.mul.Scalar, count, int(times))
        place = part if place is None else write(aten.add.Tensor, place, part)
    assert place is not None
    from_end = write(aten.clamp.default, write(aten.add.Scalar, place, extent), 0)
    return write(aten.where.self, write(aten.lt.Scalar, place, 0), from_end, place)


def split(masking: Masking, node: Node) -> bool:
    """Part rows by counts of the call: each part begins behind the rows of those in front of it."""
    value, counts = cast(Node, node.args[0]), cast("Sequence[object]", node.args[1])
    dim = argument_of(node, "dim")
    at = (0 if dim is None else cast(int, dim)) % len(shape_of_node(value))
    numbers = [count if isinstance(count, int) else symbol_of(cast(Node, count).meta["val"]) for count in counts]
    parts = {cast(int, reader.args[1]): reader for reader in node.users}
    if not all(isinstance(number, int) or number in masking.counts for number in numbers):
        return False
    if all(isinstance(number, int) for number in numbers):
        return False
    first: Place = 0
    for number, count in enumerate(numbers):
        if (part := parts.get(number)) is not None:
            goes = first if first == 0 else _negative(masking, part, first)
            rows = moved(masking, part, value, at, goes)
            if rows is None:
                return False
            shaped(masking, part, rows, at)
        first = _sum_of_counts(masking, node, first, count)
    node.graph.erase_node(node)
    return True


def _negative(masking: Masking, node: Node, place: Place) -> Place:
    return -place if isinstance(place, int) else masking.before(node, aten.neg.default, place)


def product(masking: Masking, node: Node) -> bool:
    """Multiply as many rows as the bound says."""
    value = cast(Node, node.args[0])
    shape, dim = shape_of_node(value), argument_of(node, "dim")
    sized = masking.sized(value, None if dim is None else (cast(int, dim),))
    if len(sized) != 1:
        return False
    ((at, symbol),) = sized.items()
    if symbol not in masking.bounds:
        return False
    number = masking.bounds[symbol] + _MORE
    write, places = partial(masking.before, node), masking.before(node, aten.arange.default, number)
    rows = moved(masking, node, value, at, 0, places)
    if rows is None:
        return False
    inside = write(aten.lt.Tensor, places, masking.count(node, symbol, torch.int64))
    rows = write(
        aten.where.ScalarOther, write(aten.unsqueeze.default, inside, -1), rows, _number(1, value.meta["val"].dtype)
    )
    rest = [extent for other, extent in enumerate(shape) if other != at]
    table = write(aten.movedim.int, write(aten.reshape.default, rows, [number, *rest]), 0, at)
    made = write(cast(Any, node.target), table, *node.args[1:], **node.kwargs)
    if node.target is aten.cumprod.default:
        made = write(aten.index_select.default, made, at, masking.numbers(node, symbol))
    replace(node, made)
    return True


def _number(number: float, dtype: torch.dtype) -> float:
    """A number as one of a type: a float beside integers would make floats of them."""
    if dtype is torch.bool:
        return bool(number)
    return number if dtype.is_floating_point else int(number)


@dataclass(frozen=True)
class Merged:
    """Dimensions that a call makes one of, a size that data decides among them.

    Attributes:
        at: the dimension that they become.
        outside: elements in front of it.
        before: the places that it has for each of the size's, outside of them.
        behind: those inside of them.
        inside: elements behind it.
    """

    at: int
    outside: int
    before: int
    behind: int
    inside: int

    @staticmethod
    def of(node: Node) -> Merged | None:
        """Return what a call merges; None if it merges nothing with one size that data decides."""
        shape, made = shape_of_node(node.args[0]), shape_of_node(node)
        sized = [
            [dim for dim, extent in enumerate(extents) if not isinstance(extent, int)] for extents in (shape, made)
        ]
        if any(len(dims) != 1 for dims in sized):
            return None
        (came,), (at,) = sized
        outside, inside = (prod(cast("tuple[int, ...]", part)) for part in (made[:at], made[at + 1 :]))
        ahead, behind = (prod(cast("tuple[int, ...]", part)) for part in (shape[:came], shape[came + 1 :]))
        if 0 in (outside, inside) or ahead % outside or behind % inside:
            return None
        merged = Merged(at, outside, ahead // outside, behind // inside, inside)
        times = merged.before * merged.behind
        return merged if times > 1 and symbol_of(made[at]) == times * symbol_of(shape[came]) else None


def has_padding_between(node: Node) -> bool:
    """Return whether a call merges dimensions so that padding comes to stand between rows of the caller."""
    return node.target in MERGING and (merged := Merged.of(node)) is not None and merged.before > 1


def merge(masking: Masking, node: Node) -> bool:
    """Put rows behind each other that padding parts: each place of the result selects one."""
    value, merged = cast(Node, node.args[0]), Merged.of(node)
    if merged is None or not is_place(masking, node, merged.at):
        return False
    (symbol,) = masking.sized(value).values()
    if masking.bounds.get(symbol, 0) * merged.before * merged.behind > MOST_MERGED:
        return False
    write, dtype = partial(masking.before, node), value.meta["val"].dtype
    filled = masking.filled(node, value, masking.sized(value), 0.0)
    split = [merged.outside, merged.before, -1, merged.behind, merged.inside]
    table = write(aten.permute.default, write(aten.reshape.default, filled, split), [1, 2, 3, 0, 4])
    table = write(aten.reshape.default, table, [merged.before, -1, merged.behind, merged.outside * merged.inside])
    first = write(aten.mul.Tensor, _line(masking, node, merged.before, 2), masking.count(node, symbol, torch.int64))
    row = write(aten.add.Tensor, first, write(aten.unsqueeze.default, masking.numbers(node, symbol), -1))
    goes = write(aten.mul.Scalar, row, merged.behind)
    goes = write(aten.add.Tensor, goes, write(aten.arange.default, merged.behind))
    places = masking.places(node, shape_of_node(node)[merged.at])
    for _ in range(3):
        places = write(aten.unsqueeze.default, places, -1)
    hit = write(aten.logical_and.default, write(aten.eq.Tensor, places, goes), masking.spread(node, symbol, 1))
    rows = write(aten.where.ScalarOther, write(aten.unsqueeze.default, hit, -1), table, 0)
    rows = write(aten.to.dtype, write(aten.sum.dim_IntList, rows, [1, 2, 3]), dtype)
    shaped(masking, node, rows, merged.at)
    return True


def _line(masking: Masking, node: Node, count: int, dims: int) -> Node:
    """Some numbers, counted, with more dimensions behind their own."""
    line = masking.before(node, aten.arange.default, count)
    for _ in range(dims):
        line = masking.before(node, aten.unsqueeze.default, line, -1)
    return line


def is_place(masking: Masking, node: Node, at: int) -> bool:
    """Return whether the size of a result is a number, or has a mask."""
    extent = shape_of_node(node)[at]
    return isinstance(extent, int) or symbol_of(extent) in masking.of


def _sum(masking: Masking, node: Node, first: Place, extent: object) -> Place:
    """The place behind a part."""
    return _sum_of_counts(masking, node, first, extent if isinstance(extent, int) else symbol_of(extent))


def _sum_of_counts(masking: Masking, node: Node, first: Place, extent: Any) -> Place:
    """The place behind a part whose size is a number, or a symbol."""
    if isinstance(extent, int):
        return first + extent if isinstance(first, int) else masking.before(node, aten.add.Scalar, first, extent)
    count = masking.count(node, extent, torch.int64)
    if isinstance(first, int):
        return count if first == 0 else masking.before(node, aten.add.Scalar, count, first)
    return masking.before(node, aten.add.Tensor, first, count)


def moved(masking: Masking, node: Node, value: Node, at: int, first: Place, places: Node | None = None) -> Node | None:
    """Return the rows of a value by the places of a result, as a table; 0 where there is none.

    Args:
        masking: writes.
        node: the call that gives the result.
        value: has the rows.
        at: the dimension of the rows.
        first: where the first row goes; below 0 if rows in front go nowhere.
        places: the rows that the result takes, counted from the first one; its own places if none are given.
    """
    shape = shape_of_node(value)
    rest = [extent for other, extent in enumerate(shape) if other != at]
    if not all(isinstance(extent, int) for extent in rest):
        return None
    write, known = partial(masking.before, node), value.meta["val"]
    places = masking.places(node, shape_of_node(node)[at]) if places is None else places
    sized = masking.sized(value, (at,))
    filled = masking.filled(node, value, sized, 0.0)
    table = write(aten.reshape.default, write(aten.movedim.int, filled, at, 0), [-1, prod(cast("list[int]", rest))])
    goes: Node = masking.places(node, shape[at])
    if first != 0:
        goes = write(aten.add.Scalar if isinstance(first, int) else aten.add.Tensor, goes, first)
    hit = write(aten.eq.Tensor, write(aten.unsqueeze.default, places, -1), goes)
    for symbol in sized.values():
        hit = write(aten.logical_and.default, hit, masking.of[symbol])
    return picked(masking, node, hit, table, known.dtype)


def shaped(masking: Masking, node: Node, rows: Node, at: int) -> None:
    """Replace a call by rows of a table, which stand along a dimension of its result."""
    rest = [extent for other, extent in enumerate(shape_of_node(node)) if other != at]
    table = masking.before(node, aten.reshape.default, rows, [-1, *rest])
    replace(node, masking.before(node, aten.movedim.int, table, 0, at))
