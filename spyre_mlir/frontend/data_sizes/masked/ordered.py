"""Calls that order elements along a size that data decides: sorts, the first few of them, and places of extremes.

Decision: docs/decisions/0192-a-bound-stands-for-sizes-that-data-decides.md
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import partial
from math import inf, prod
from typing import Any, cast

import torch
from torch.fx import Node

from spyre_mlir.frontend.data_sizes.masked.counted_sorts import CountedSort
from spyre_mlir.frontend.data_sizes.masked.masking import (
    Masking,
    argument_of,
    replace,
    replace_results,
    shape_of_node,
    symbol_of,
)
from spyre_mlir.frontend.data_sizes.masked.resized import moved

aten = torch.ops.aten

_PLACES_OF_SORTS = frozenset({aten.argsort.default, aten.argsort.stable})
SORTS = _PLACES_OF_SORTS | {aten.sort.default, aten.sort.stable}
# Places of the largest and the least elements, and what fills padding.
EXTREMES: dict[object, tuple[Any, float]] = {
    aten.max.dim: (aten.amax.default, -inf),
    aten.argmax.default: (aten.amax.default, -inf),
    aten.min.dim: (aten.amin.default, inf),
    aten.argmin.default: (aten.amin.default, inf),
}
_PLACES_OF_EXTREMES = frozenset({aten.argmax.default, aten.argmin.default})
# Greater than all places: whole numbers are exact up to twice this one.
_NO_PLACE = 1 << 23


def sort(masking: Masking, node: Node) -> bool:
    """Count in the place of a sort."""
    if not _along(masking, node):
        return False
    found = _counted(masking, node, descending=bool(argument_of(node, "descending")))
    if node.target in _PLACES_OF_SORTS:
        replace(node, found[1])
    else:
        replace_results(node, found)
    return True


def topk(masking: Masking, node: Node) -> bool:
    """Count in the place of a sort for the first few elements, also where a size says how many."""
    number, along, descending = node.args[1], _along(masking, node), bool(argument_of(node, "largest"))
    if isinstance(number, int):
        wanted = masking.before(node, aten.arange.default, number) if along else None
    else:
        symbol = symbol_of(_number_of(node))
        if symbol not in masking.of:
            return False
        if not along:
            return _first_of_sorted(masking, node, descending)
        wanted = masking.numbers(node, symbol)
    if wanted is None:
        return False
    replace_results(node, _counted(masking, node, descending=descending, wanted=wanted))
    return True


def _first_of_sorted(masking: Masking, node: Node, descending: bool) -> bool:
    """Sort all elements, whose number is known: a network has the same steps for each size then."""
    value, dim = cast(Node, node.args[0]), _dim(node)
    if not all(isinstance(extent, int) for extent in shape_of_node(value)):
        return False
    write, known = partial(masking.before, node), value.meta["val"]
    found, symbol = write(aten.sort.default, value, dim, descending), symbol_of(_number_of(node))
    at, shape = dim % len(shape_of_node(value)), shape_of_node(value)
    rest = [extent for other, extent in enumerate(shape) if other != at]
    results = list[Node]()
    for place, dtype in enumerate((known.dtype, torch.int64)):
        item = write(operator.getitem, found, place)
        item.meta["val"] = known.to(dtype)
        # Not a slice: of as many as there are elements, torch takes the size for known.
        rows = moved(masking, node, item, at, 0, masking.numbers(node, symbol))
        assert rows is not None
        results.append(write(aten.movedim.int, write(aten.reshape.default, rows, [-1, *rest]), 0, at))
    replace_results(node, results)
    return True


def _number_of(node: Node) -> Any:
    """The number of elements that a call asks for."""
    return cast(Node, node.args[1]).meta.get("val")


def kthvalue(masking: Masking, node: Node) -> bool:
    """Count up to one element."""
    number = node.args[1]
    if not isinstance(number, int) or not _along(masking, node):
        return False
    return _one(masking, node, masking.before(node, aten.full.default, [1], number - 1, dtype=torch.int64))


def median(masking: Masking, node: Node) -> bool:
    """Count up to the lower one of the elements in the middle."""
    sized = _along(masking, node)
    return bool(sized) and _one(masking, node, _middle(masking, node, sized))


def median_of_all(masking: Masking, node: Node) -> bool:
    """Find the median of a line of numbers."""
    sized = _along(masking, node)
    if not sized or len(shape_of_node(node.args[0])) > 1:
        return False
    values, _ = _counted(masking, node, descending=False, wanted=_middle(masking, node, sized))
    replace(node, masking.before(node, aten.squeeze.dim, values, 0))
    return True


def _along(masking: Masking, node: Node) -> dict[int, Any]:
    """The dimension along which a call orders, if it has a mask; the last one if the call names none."""
    return masking.sized(node.args[0], (_dim(node),))


def _dim(node: Node) -> int:
    dim = argument_of(node, "dim")
    return -1 if dim is None else dim


def _middle(masking: Masking, node: Node, sized: dict[int, Any]) -> Node:
    """The number of the lower one of the elements in the middle, or of the first NaN, along the last dimension."""
    (symbol,), write, value = sized.values(), partial(masking.before, node), cast(Node, node.args[0])
    count = masking.count(node, symbol, torch.int64)
    middle = write(aten.div.Scalar_mode, write(aten.sub.Scalar, count, 1), 2, rounding_mode="floor")
    middle = write(aten.unsqueeze.default, middle, 0)
    if not value.meta["val"].is_floating_point():
        return middle
    last = len(shape_of_node(value)) - 1
    turned = write(aten.transpose.int, value, _dim(node), -1)
    gone = masking.masked(node, write(aten.ne.Tensor, turned, turned), {last: symbol}, last + 1)
    number = write(aten.sum.dim_IntList, gone, [-1], True)
    # NaN come behind all numbers.
    return write(aten.where.self, write(aten.gt.Scalar, number, 0), write(aten.sub.Tensor, count, number), middle)


def _one(masking: Masking, node: Node, wanted: Node) -> bool:
    found = _counted(masking, node, descending=False, wanted=wanted)
    if not argument_of(node, "keepdim"):
        found = [masking.before(node, aten.squeeze.dim, one, _dim(node)) for one in found]
    replace_results(node, found)
    return True


def _counted(masking: Masking, node: Node, *, descending: bool, wanted: Node | None = None) -> list[Node]:
    """The ordered elements and their places along the dimension of a call."""
    value, dim = cast(Node, node.args[0]), _dim(node)
    (symbol,) = masking.sized(value, (dim,)).values()
    write = partial(masking.before, node)
    counted = CountedSort(write, masking.of[symbol], value.meta["val"].dtype, descending)
    results = counted.results(write(aten.transpose.int, value, dim, -1), wanted)
    return [write(aten.transpose.int, one, dim, -1) for one in results]


def extreme(masking: Masking, node: Node) -> bool:
    """Find the first place that holds the largest, or least, element."""
    value = cast(Node, node.args[0])
    shape, dim = shape_of_node(value), argument_of(node, "dim")
    dims: Sequence[int] = range(len(shape)) if dim is None else (cast(int, dim) % len(shape),)
    sized = masking.sized(value, dims)
    if not sized or (dim is None and not _is_line(shape, sized)):
        return False
    best, fill = EXTREMES[node.target]
    write = partial(masking.before, node)
    filled = masking.filled(node, value, sized, fill)
    values = write(best, filled, list(dims), True)
    hit = write(aten.eq.Tensor, filled, values)
    if value.meta["val"].is_floating_point():
        hit = write(aten.logical_or.default, hit, write(aten.ne.Tensor, filled, filled))
    hit = masking.masked(node, hit, sized, len(shape))
    places = _places(masking, node, shape, dims)
    found = write(aten.amin.default, write(aten.where.ScalarOther, hit, places, _NO_PLACE), list(dims), True)
    results = [values, found]
    if not argument_of(node, "keepdim"):
        results = [write(aten.squeeze.dims, one, list(dims)) for one in results]
    if node.target in _PLACES_OF_EXTREMES:
        replace(node, results[1])
    else:
        replace_results(node, results)
    return True


def _is_line(shape: Sequence[object], sized: dict[int, Any]) -> bool:
    """Return whether only the first dimension has a size that data decides."""
    return list(sized) == [0] and all(isinstance(extent, int) for extent in shape[1:])


def _places(masking: Masking, node: Node, shape: Sequence[object], dims: Sequence[int]) -> Node:
    """The numbers of the elements along some neighbouring dimensions of a value, which it may be compared with."""
    total: Node | None = None
    for dim in dims:
        inner = prod(cast(int, shape[other]) for other in dims if other > dim)
        places = masking.before(node, aten.mul.Scalar, masking.places(node, shape[dim]), inner)
        for _ in range(len(shape) - 1 - dim):
            places = masking.before(node, aten.unsqueeze.default, places, -1)
        total = places if total is None else masking.before(node, aten.add.Tensor, total, places)
    assert total is not None
    return total
