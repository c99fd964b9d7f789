"""Groups of rows behind each other, along a size that data decides: bags of embeddings, segments, adaptive pools.

A group begins at a row and ends at another one, which are numbers of the call. Truth values say which of the caller's
rows are in which group; sums and extremes of the others take in nothing.

Decision: docs/decisions/0192-a-bound-stands-for-sizes-that-data-decides.md
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import inf
from typing import Any, cast

import torch
from torch.fx import Node

from spyre_mlir.frontend.data_sizes.masked.masking import (
    Masking,
    argument_of,
    of_type,
    replace,
    replace_results,
    shape_of_node,
    symbol_of,
)

aten = torch.ops.aten

BAGS: frozenset[object] = frozenset(
    {aten.embedding_bag.default, aten.embedding_bag.padding_idx, aten._embedding_bag_forward_only.default}
)
# The number of dimensions that an adaptive pool leaves fewer places of, and whether it takes means.
POOLS: dict[object, tuple[int, bool]] = {
    aten.adaptive_avg_pool1d.default: (1, True),
    aten.adaptive_avg_pool2d.default: (2, True),
    aten._adaptive_avg_pool2d.default: (2, True),
    aten.adaptive_max_pool1d.default: (1, False),
    aten.adaptive_max_pool2d.default: (2, False),
}
_SUM, _MEAN, _LARGEST = range(3)  # as an embedding bag numbers them
_KINDS = {"sum": (aten.sum.dim_IntList, 0.0), "max": (aten.amax.default, -inf), "min": (aten.amin.default, inf)}
_WITH_INITIAL: dict[str, Any] = {"sum": aten.add.Scalar, "max": aten.clamp_min.default, "min": aten.clamp_max.default}


def bag(masking: Masking, node: Node) -> bool:
    """Sum embeddings, or take means or extremes of them, by bags; indices in two dimensions have a bag for each row."""
    weight, indices, offsets = cast("tuple[Node, Node, Node]", node.args[:3])
    mode, weights = cast(int, argument_of(node, "mode")), argument_of(node, "per_sample_weights")
    without = argument_of(node, "padding_idx")
    rows = _rows_of_bags(indices, offsets)
    sized = masking.sized(indices if rows is None else rows)
    if not sized or masking.sized(weight) or any(cast(int, reader.args[1]) != 0 for reader in node.users):
        return False
    if without is not None and cast(int, without) >= 0:
        return False
    if rows is not None:
        made = _bags_of_rows(masking, node, rows, mode)
    elif masking.sized(offsets) or argument_of(node, "include_last_offset"):
        return False
    else:
        (symbol,) = sized.values()
        inside = _inside(masking, node, symbol, *_ends_of_bags(masking, node, offsets, symbol))
        found = masking.before(node, aten.embedding.default, weight, indices)
        if isinstance(weights, Node):
            found = masking.before(
                node, aten.mul.Tensor, found, masking.before(node, aten.unsqueeze.default, weights, -1)
            )
        made = _reduced_bags(masking, node, inside, found, mode)
    replace_results(node, [made])
    return True


def _rows_of_bags(indices: Node, offsets: Node) -> Node | None:
    """The indices in two dimensions that torch put behind each other, a bag for each row."""
    if offsets.target is not aten.arange.start_step or indices.target not in (aten.view.default, aten.reshape.default):
        return None
    rows = cast(Node, indices.args[0])
    shape, (begin, _, step) = shape_of_node(rows), (*cast("tuple[object, ...]", offsets.args), 1)[:3]
    return rows if len(shape) == 2 and shape[1] == step and begin == 0 else None


def _bags_of_rows(masking: Masking, node: Node, rows: Node, mode: int) -> Node:
    write = partial(masking.before, node)
    weights, count = argument_of(node, "per_sample_weights"), cast(int, shape_of_node(rows)[1])
    found = write(aten.embedding.default, node.args[0], rows)
    if isinstance(weights, Node):
        laid = write(aten.unsqueeze.default, write(aten.reshape.default, weights, [-1, count]), -1)
        found = write(aten.mul.Tensor, found, laid)
    if mode == _LARGEST:
        return write(aten.amax.default, found, [1])
    total = write(aten.sum.dim_IntList, found, [1])
    return total if mode == _SUM else write(aten.div.Scalar, total, count)


def _ends_of_bags(masking: Masking, node: Node, offsets: Node, symbol: Any) -> tuple[Node, Node]:
    """Where bags begin and end, the last one behind all rows; that none begins behind them is checked."""
    write, number = partial(masking.before, node), cast(int, shape_of_node(offsets)[0])
    count = write(aten.reshape.default, masking.count(node, symbol, torch.int64), [1])
    begins = write(aten.to.dtype, offsets, torch.int64)
    masking.checks.append(write(aten.all.default, write(aten.le.Tensor, begins, count)))
    later = write(aten.slice.Tensor, begins, 0, 1, number)
    return begins, write(aten.cat.default, [later, count], 0) if number > 1 else count


def _reduced_bags(masking: Masking, node: Node, inside: Node, found: Node, mode: int) -> Node:
    """Reduce rows by groups; of an empty one, torch gives 0."""
    write, dtype = partial(masking.before, node), cast(Node, node.args[0]).meta["val"].dtype
    if mode == _SUM:
        return _of_groups(masking, node, inside, found, "sum", dtype)
    count = write(aten.unsqueeze.default, write(aten.sum.dim_IntList, inside, [-1]), -1)
    if mode == _MEAN:
        total = _of_groups(masking, node, inside, found, "sum", dtype)
        return write(aten.div.Tensor, total, write(aten.to.dtype, write(aten.clamp_min.default, count, 1), dtype))
    most = _of_groups(masking, node, inside, found, "max", dtype)
    return write(aten.where.ScalarOther, write(aten.gt.Scalar, count, 0), most, 0)


def segments(masking: Masking, node: Node) -> bool:
    """Reduce rows by segments whose lengths a call says; together they are all rows."""
    value, lengths, reduction = cast(Node, node.args[0]), argument_of(node, "lengths"), cast(str, node.args[1])
    sized, initial = masking.sized(value), argument_of(node, "initial")
    if list(sized) != [0] or argument_of(node, "axis") != 0 or not isinstance(lengths, Node):
        return False
    if len(shape_of_node(lengths)) != 1 or not (reduction in _KINDS or (reduction == "mean" and initial is None)):
        return False
    (symbol,), write, dtype = sized.values(), partial(masking.before, node), value.meta["val"].dtype
    numbers = write(aten.to.dtype, masking.filled(node, lengths, masking.sized(lengths), 0), torch.int64)
    ends = write(aten.cumsum.default, numbers, 0)
    masking.checks.append(
        write(aten.eq.Tensor, write(aten.sum.default, numbers), masking.count(node, symbol, torch.int64))
    )
    inside = _inside(masking, node, symbol, write(aten.sub.Tensor, ends, numbers), ends)
    inner = len(shape_of_node(value)) - 1
    made = _of_groups(masking, node, inside, value, "sum" if reduction == "mean" else reduction, dtype, inner)
    if reduction == "mean":
        made = write(
            aten.div.Tensor, made, write(aten.reshape.default, write(aten.to.dtype, numbers, dtype), [-1, *[1] * inner])
        )
    elif initial is not None:
        made = write(_WITH_INITIAL[reduction], made, initial)
    replace(node, made)
    return True


def pool(masking: Masking, node: Node) -> bool:
    """Take means or extremes of some parts of a size, which overlap where it is no multiple of their number."""
    value, (rank, is_mean) = cast(Node, node.args[0]), POOLS[node.target]
    shape, given = shape_of_node(value), cast("Sequence[object]", node.args[1])
    sizes = [*given] * rank if len(given) == 1 else [*given]
    dims = range(len(shape) - rank, len(shape))
    if not masking.sized(value, dims) or not all(isinstance(size, int) for size in sizes):
        return False
    if not is_mean and any(cast(int, reader.args[1]) != 0 for reader in node.users):
        return False
    made = masking.filled(node, value, masking.sized(value, dims), 0.0)
    for dim, size in zip(dims, cast("list[int]", sizes), strict=True):
        made = _parts(masking, node, made, (dim, len(shape), shape[dim]), size, "sum" if is_mean else "max")
    if is_mean:
        replace(node, made)
    else:
        replace_results(node, [made])
    return True


def _parts(masking: Masking, node: Node, value: Node, at: tuple[int, int, object], size: int, kind: str) -> Node:
    """Pool one dimension: part i of k begins at the whole number below i n / k and ends at that above (i + 1) n / k."""
    (dim, rank, extent), write = at, partial(masking.before, node)
    symbol, dtype = symbol_of(extent), cast(Node, node.args[0]).meta["val"].dtype
    is_sized, number = symbol in masking.of, masking.places(node, size)
    count = masking.count(node, symbol, torch.int64) if is_sized else write(aten.full.default, [], extent)
    begins = write(aten.floor_divide.default, write(aten.mul.Tensor, number, count), size)
    above = write(aten.mul.Tensor, write(aten.add.Scalar, number, 1), count)
    ends = write(aten.floor_divide.default, write(aten.add.Scalar, above, size - 1), size)
    inside = _inside(masking, node, symbol if is_sized else None, begins, ends, extent)
    last = write(aten.unsqueeze.default, write(aten.movedim.int, value, dim, -1), -2)
    reduce, neutral = _KINDS[kind]
    made = write(reduce, write(aten.where.ScalarOther, inside, last, of_type(neutral, dtype)), [-1])
    if kind == "sum":
        made = write(aten.div.Tensor, made, write(aten.to.dtype, write(aten.sub.Tensor, ends, begins), dtype))
    return write(aten.movedim.int, made, -1, dim) if dim != rank - 1 else made


def _inside(masking: Masking, node: Node, symbol: Any, begins: Node, ends: Node, extent: object = None) -> Node:
    """Whether a row is in a group, [groups, rows]."""
    write = partial(masking.before, node)
    places = masking.numbers(node, symbol) if symbol is not None else masking.places(node, extent)
    begun = write(aten.le.Tensor, write(aten.unsqueeze.default, begins, -1), places)
    before = write(aten.gt.Tensor, write(aten.unsqueeze.default, ends, -1), places)
    inside = write(aten.logical_and.default, begun, before)
    return inside if symbol is None else write(aten.logical_and.default, inside, masking.of[symbol])


def _of_groups(
    masking: Masking, node: Node, inside: Node, rows: Node, kind: str, dtype: torch.dtype, inner: int = 1
) -> Node:
    """Reduce rows with some dimensions behind the first, by groups."""
    (reduce, neutral), write = _KINDS[kind], partial(masking.before, node)
    for _ in range(inner):
        inside = write(aten.unsqueeze.default, inside, -1)
    chosen = write(aten.where.ScalarOther, inside, rows, of_type(neutral, dtype))
    return write(reduce, chosen, [1])
