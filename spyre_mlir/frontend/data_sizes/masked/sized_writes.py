"""Writes to places that tensors name, as many as data decides: padding is written nowhere.

Each place asks for the last one that names it. A write through a mask of truth values finds its rows by counting, and
checks that there are as many as places. What padding adds is 0.

Decision: docs/decisions/0192-a-bound-stands-for-sizes-that-data-decides.md
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf, prod
from typing import Any, cast

import torch
from torch.fx import Node

from spyre_mlir.frontend.data_sizes.masked.masking import Masking, argument_of, of_type, replace, shape_of_node
from spyre_mlir.frontend.data_sizes.masked.sized_reads import picked

aten = torch.ops.aten

SUMS = frozenset({
    aten.index_add.default,
    aten.index_reduce.default,
    aten.scatter_add.default,
    aten.scatter_reduce.two,
})  # fmt: skip
# What padding writes to a place without a change, and how the place takes the rest into what it holds.
_NEUTRAL = {"sum": 0.0, "mean": 0.0, "amax": -inf, "amin": inf}
_WITH_SELF: dict[str, Any] = {"amax": aten.maximum.default, "amin": aten.minimum.default}
# Stands for no place.
_NONE = -1


def add(masking: Masking, node: Node) -> bool:
    """Let padding add 0 to the first place, or be no extreme of what is written to it."""
    index, source = cast("tuple[Node, Node]", node.args[2:4])
    sized, reduction = masking.sized(index), argument_of(node, "reduce")
    if not sized:
        return False
    if reduction not in (None, "sum") or argument_of(node, "include_self") is False:
        if node.target is aten.scatter_reduce.two:
            return _reduce_apart(masking, node, index, cast(str, reduction))
        return node.target is aten.index_reduce.default and _reduce_apart(
            masking, node, _for_each_element(masking, node, index, source), cast(str, reduction)
        )
    node.update_arg(2, masking.filled(node, index, sized, 0))
    node.update_arg(3, masking.filled(node, source, masking.sized(source), 0))
    return True


def _for_each_element(masking: Masking, node: Node, index: Node, source: Node) -> Node:
    """The index of rows as one of all elements of a source."""
    shape, write = shape_of_node(source), partial(masking.before, node)
    at = cast(int, node.args[1]) % len(shape)
    line = write(aten.reshape.default, index, [-1 if dim == at else 1 for dim in range(len(shape))])
    made = write(aten.expand.default, line, [-1 if dim == at else extent for dim, extent in enumerate(shape)])
    made.meta["val"] = source.meta["val"].new_empty(source.meta["val"].shape, dtype=torch.int64)
    return made


def _reduce_apart(masking: Masking, node: Node, index: Node, reduction: str) -> bool:
    """Reduce what is written to each place by itself, and then with what the place holds."""
    value, dim, source = cast("tuple[Node, int, Node]", (*node.args[:2], node.args[3]))
    known, with_self = value.meta["val"].dtype, bool(argument_of(node, "include_self"))
    if reduction not in _NEUTRAL or (reduction == "mean" and not known.is_floating_point):
        return False
    write = partial(masking.before, node)
    places = masking.filled(node, index, masking.sized(index), 0)

    def reduced(given: Node, kind: str) -> Node:
        filled = masking.filled(node, given, masking.sized(given), _NEUTRAL[kind])
        empty = write(aten.full_like.default, value, of_type(_NEUTRAL[kind], known))
        return write(aten.scatter_reduce.two, empty, dim, places, filled, kind)

    if with_self and reduction in _WITH_SELF:
        replace(node, write(_WITH_SELF[reduction], reduced(source, reduction), value))
        return True
    ones = write(aten.ones_like.default, source)
    ones.meta["val"] = source.meta["val"]
    count, made = reduced(ones, "sum"), reduced(source, "sum" if reduction == "mean" else reduction)
    if reduction == "mean":
        if with_self:
            made, count = write(aten.add.Tensor, made, value), write(aten.add.Scalar, count, 1)
        made = write(aten.div.Tensor, made, write(aten.clamp_min.default, count, 1))
    replace(node, write(aten.where.self, write(aten.gt.Scalar, count, 0), made, value))
    return True


def copy_rows(masking: Masking, node: Node) -> bool:
    """Write rows along a dimension."""
    value, dim, index, source = cast("tuple[Node, int, Node, Node]", node.args)
    at = dim % len(shape_of_node(value))
    return _put(masking, node, [*[None] * at, index], source)


def fill_rows(masking: Masking, node: Node) -> bool:
    """Write one number along a dimension."""
    value, dim, index = cast("tuple[Node, int, Node]", node.args[:3])
    at = dim % len(shape_of_node(value))
    return _put(masking, node, [*[None] * at, index], node.args[3])


def put(masking: Masking, node: Node) -> bool:
    """Write rows that one index names, or elements that several name together, or a mask."""
    indices = cast("Sequence[Node | None]", node.args[1])
    first = next(index for index in indices if index is not None)
    if first.meta["val"].dtype is torch.bool:
        return len(indices) == 1 and _put_by_mask(masking, node, first)
    return _put(masking, node, indices, node.args[2])


def _put(masking: Masking, node: Node, indices: Sequence[Node | None], values: object) -> bool:
    """Write rows to the places of some neighbouring dimensions that lines of numbers name."""
    value = cast(Node, node.args[0])
    named = {dim: index for dim, index in enumerate(indices) if index is not None}
    symbols = {symbol for index in named.values() for symbol in masking.sized(index).values()}
    lines = all(len(shape_of_node(index)) == 1 for index in named.values())
    extents = _Extents.of(masking, value, min(named), len(named))
    if len(symbols) != 1 or not lines or extents is None or list(named) != list(extents.dims):
        return False
    (symbol,), write = symbols, partial(masking.before, node)
    number = _numbered(masking, node, list(named.values()), extents)
    places = write(aten.unsqueeze.default, extents.places(masking, node), -1)
    hit = write(aten.logical_and.default, write(aten.eq.Tensor, number, places), masking.of[symbol])
    dtype = value.meta["val"].dtype
    table = _table(masking, node, symbol, values, extents, dtype)
    line = write(aten.reshape.default, value, extents.line)
    if argument_of(node, "accumulate"):
        made = write(aten.add.Tensor, line, extents.laid_back(write, picked(masking, node, hit, table, dtype)))
    else:
        last = _last(masking, node, hit, symbol)
        only = write(aten.eq.Tensor, write(aten.unsqueeze.default, last, -1), masking.numbers(node, symbol))
        only = write(aten.logical_and.default, only, masking.of[symbol])
        rows = extents.laid_back(write, picked(masking, node, only, table, dtype))
        is_written = write(aten.reshape.default, write(aten.ge.Scalar, last, 0), [-1, *[1] * len(extents.behind)])
        made = write(aten.where.self, is_written, rows, line)
    replace(node, write(aten.reshape.default, made, extents.shape))
    return True


@dataclass(frozen=True)
class _Extents:
    """The extents of what is written: those of the places, and those in front of them and behind.

    Attributes:
        before: in front of the places.
        written: of the places; -1 for the one place that data decides.
        behind: behind the places.
        symbol: of the size that the places are as many as, if data decides it.
    """

    before: tuple[int, ...]
    written: tuple[int, ...]
    behind: tuple[int, ...]
    symbol: Any = None

    @staticmethod
    def of(masking: Masking, value: Node, first: int, count: int) -> _Extents | None:
        """Return the extents of a value; None if data decides one, unless it is the only one of the places."""
        shape = list(shape_of_node(value))
        symbol = masking.sized(value, (first,)).get(first) if count == 1 else None
        if symbol is not None:
            shape[first] = -1
        if not all(isinstance(extent, int) for extent in shape):
            return None
        known = tuple(cast("list[int]", shape))
        return _Extents(known[:first], known[first : first + count], known[first + count :], symbol)

    def places(self, masking: Masking, node: Node) -> Node:
        """Return the numbers of the places."""
        if self.symbol is not None:
            return masking.numbers(node, self.symbol)
        return masking.before(node, aten.arange.default, prod(self.written))

    def from_end(self, masking: Masking, node: Node, index: Node, place: int) -> Node:
        """Return the places that an index names if it counts from the end of a dimension."""
        if self.symbol is not None:
            count = masking.count(node, self.symbol, index.meta["val"].dtype)
            return masking.before(node, aten.add.Tensor, index, count)
        return masking.before(node, aten.add.Scalar, index, self.written[place])

    @property
    def dims(self) -> range:
        """The written dimensions."""
        return range(len(self.before), len(self.before) + len(self.written))

    @property
    def shape(self) -> list[int]:
        """All extents."""
        return [*self.before, *self.written, *self.behind]

    @property
    def line(self) -> list[int]:
        """The extents with the places in one dimension."""
        return [*self.before, prod(self.written), *self.behind]

    def laid_back(self, write: Callable[..., Node], rows: Node) -> Node:
        """Return rows of a table, one for each place, as the extents are."""
        made = write(aten.reshape.default, rows, [-1, *self.before, *self.behind])
        return write(aten.movedim.int, made, 0, len(self.before))


def _numbered(masking: Masking, node: Node, indices: Sequence[Node], extents: _Extents) -> Node:
    """The number of the element that several indices, which may be negative, name together."""
    write, total = partial(masking.before, node), None
    for place, index in enumerate(indices):
        from_end = extents.from_end(masking, node, index, place)
        wrapped = write(aten.where.self, write(aten.lt.Scalar, index, 0), from_end, index)
        part = write(aten.mul.Scalar, wrapped, prod(extents.written[place + 1 :]))
        total = part if total is None else write(aten.add.Tensor, total, part)
    assert total is not None
    return total


def _table(masking: Masking, node: Node, symbol: Any, values: object, extents: _Extents, dtype: torch.dtype) -> Node:
    """The rows that are written, [size, elements]; values may have fewer dimensions, and then stand for all."""
    write = partial(masking.before, node)
    given = values if isinstance(values, Node) else write(aten.full.default, [], values, dtype=dtype)
    # The mask gives the values the dimension of the indices.
    rows = write(aten.where.ScalarOther, masking.spread(node, symbol, len(extents.behind)), given, 0)
    rows = write(aten.expand.default, write(aten.to.dtype, rows, dtype), [*extents.before, -1, *extents.behind])
    rows = write(aten.movedim.int, rows, len(extents.before), 0)
    return write(aten.reshape.default, rows, [-1, prod(extents.before) * prod(extents.behind)])


def _last(masking: Masking, node: Node, hit: Node, symbol: Any) -> Node:
    """The last number that hits each place; none is negative."""
    chosen = masking.before(node, aten.where.ScalarOther, hit, masking.numbers(node, symbol), _NONE)
    return masking.before(node, aten.amax.default, chosen, [-1])


def scatter(masking: Masking, node: Node) -> bool:
    """Write elements along one dimension, where the index has all of the others."""
    value, dim, index = cast("tuple[Node, int, Node]", node.args[:3])
    shape, write = shape_of_node(value), partial(masking.before, node)
    at = dim % max(len(shape), 1)
    sized = masking.sized(index)
    same = [a == b for d, (a, b) in enumerate(zip(shape, shape_of_node(index), strict=True)) if d != at]
    if list(sized) != [at] or not all(same) or not isinstance(extent := shape[at], int):
        return False
    (symbol,) = sized.values()
    given = node.args[3]
    source = given if isinstance(given, Node) else write(aten.full_like.default, index, given, dtype=_dtype(value))
    if isinstance(given, Node) and shape_of_node(given) != shape_of_node(index):
        return False
    line, source = (write(aten.unsqueeze.default, write(aten.movedim.int, x, at, -1), -2) for x in (index, source))
    places = write(aten.unsqueeze.default, write(aten.arange.default, extent), -1)
    hit = write(aten.logical_and.default, write(aten.eq.Tensor, line, places), masking.of[symbol])
    last = _last(masking, node, hit, symbol)
    only = write(aten.eq.Tensor, write(aten.unsqueeze.default, last, -1), masking.numbers(node, symbol))
    only = write(aten.logical_and.default, only, masking.of[symbol])
    chosen = write(aten.sum.dim_IntList, write(aten.where.ScalarOther, only, source, 0), [-1])
    chosen = write(aten.movedim.int, write(aten.to.dtype, chosen, _dtype(value)), -1, at)
    is_written = write(aten.movedim.int, write(aten.ge.Scalar, last, 0), -1, at)
    replace(node, write(aten.where.self, is_written, chosen, value))
    return True


def _dtype(value: Node) -> torch.dtype:
    return value.meta["val"].dtype


def _put_by_mask(masking: Masking, node: Node, mask: Node) -> bool:
    """Write rows where a mask is true: each row of the values to the next true place."""
    value, values = cast("tuple[Node, Node]", (node.args[0], node.args[2]))
    inner = shape_of_node(value)[len(shape_of_node(mask)) :]
    alike = not argument_of(node, "accumulate") and shape_of_node(values)[1:] == inner
    return alike and _rows_by_mask(masking, node, (value, mask, values), aten.eq.Tensor)


def scatter_by_mask(masking: Masking, node: Node) -> bool:
    """Write elements where a mask is true, or rows, of a source that may have more of them."""
    value, mask, source = cast("tuple[Node, Node, Node]", node.args)
    shape, of_source = shape_of_node(value), shape_of_node(source)
    if len(of_source) == 1 and shape_of_node(mask) == shape:
        return _rows_by_mask(masking, node, (value, mask, source), aten.le.Tensor)
    if len(of_source) != 2 or of_source[1] != shape[-1] or (rows := _mask_of_rows(mask, shape)) is None:
        return False
    line = masking.before(node, aten.squeeze.dim, rows, -1)
    line.meta["val"] = rows.meta["val"].squeeze(-1)
    return _rows_by_mask(masking, node, (value, line, source), aten.le.Tensor)


def _mask_of_rows(mask: Node, shape: Sequence[object]) -> Node | None:
    """The mask that is expanded along the last dimension of a shape; None if elements of a row differ."""
    while mask.target is aten.expand.default:
        mask = cast(Node, mask.args[0])
    return mask if [*shape_of_node(mask)] == [*shape[:-1], 1] else None


def _rows_by_mask(masking: Masking, node: Node, given: tuple[Node, Node, Node], enough: Any) -> bool:
    """Write rows where a mask is true, and check that there are enough of them."""
    value, mask, values = given
    extents, sized = _Extents.of(masking, value, 0, len(shape_of_node(mask))), masking.sized(values, (0,))
    if not sized or extents is None:
        return False
    (symbol,), write = sized.values(), partial(masking.before, node)
    line = write(aten.reshape.default, masking.filled(node, mask, masking.sized(mask), 0), [prod(extents.written)])
    number = write(aten.cumsum.default, write(aten.to.dtype, line, torch.int64), 0)
    masking.checks.append(write(enough, write(aten.sum.default, line), masking.count(node, symbol, torch.int64)))
    number = write(aten.unsqueeze.default, write(aten.sub.Scalar, number, 1), -1)
    hit = write(aten.eq.Tensor, number, masking.numbers(node, symbol))
    hit = write(aten.logical_and.default, hit, masking.of[symbol])
    table = _table(masking, node, symbol, values, extents, _dtype(value))
    rows = extents.laid_back(write, picked(masking, node, hit, table, _dtype(value)))
    chosen = write(aten.reshape.default, line, [-1, *[1] * len(extents.behind)])
    made = write(aten.where.self, chosen, rows, write(aten.reshape.default, value, extents.line))
    replace(node, write(aten.reshape.default, made, extents.shape))
    return True
