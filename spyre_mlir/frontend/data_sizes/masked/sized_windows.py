"""Windows along a size that data decides: convolutions, pools, and `unfold`.

The rows that a window reads are selected by their places, tap by tap, so that padding enters none. What is left of a
convolution is one of windows of one row, which has as many channels as all taps; of a pool, extremes or sums of rows.

Decision: docs/decisions/0214-results-of-other-sizes-have-sizes-of-their-own.md
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from dataclasses import replace as replace_fields
from functools import partial
from math import inf
from typing import Any, cast

import torch
from torch.fx import Node

from spyre_mlir.frontend.data_sizes.masked.masking import Masking, argument_of, of_type, replace, shape_of_node
from spyre_mlir.frontend.data_sizes.masked.resized import is_place, moved, shaped

aten = torch.ops.aten

CONVOLUTIONS: frozenset[object] = frozenset(
    {aten.conv1d.default, aten.conv1d.padding, aten.conv2d.default, aten.conv2d.padding}
)


@dataclass(frozen=True)
class _Windows:
    """Windows along a dimension of a value that has a mask.

    Attributes:
        masking: writes.
        node: the call that reads windows.
        value: what it reads.
        at: the dimension, in the value and in the result.
        taps: the number of rows of a window.
        stride: rows between windows.
        in_front: rows in front of the caller's.
        dilation: rows between those of a window.
    """

    masking: Masking
    node: Node
    value: Node
    at: int
    taps: int
    stride: int = 1
    in_front: int = 0
    dilation: int = 1

    def note_least(self) -> None:
        """Note the least size that all taps reach: two that reach no row would select alike, and be one constant."""
        (symbol,) = self.masking.sized(self.value, (self.at,)).values()
        reach = max(self.in_front, (self.taps - 1) * self.dilation - self.in_front)
        self.masking.least[symbol] = max(self.masking.least.get(symbol, 0), reach + 1)

    def tables(self) -> Iterator[tuple[int, Node]]:
        """The rows that each tap reads, [places, elements], 0 where there is none; with where the first row goes."""
        places = self.places()
        for tap in range(self.taps):
            first = self.in_front - tap * self.dilation
            table = moved(self.masking, self.node, self.value, self.at, first, places)
            assert table is not None
            yield first, table

    def places(self) -> Node:
        """The place of each window."""
        places = self.masking.places(self.node, shape_of_node(self.node)[self.at])
        return places if self.stride == 1 else self.masking.before(self.node, aten.mul.Scalar, places, self.stride)

    def inside(self, first: int) -> Node:
        """Return whether a tap reads a row of the caller, by window, [places, 1]."""
        (symbol,) = self.masking.sized(self.value, (self.at,)).values()
        write = partial(self.masking.before, self.node)
        row = write(aten.sub.Scalar, self.places(), first)
        below = write(aten.lt.Tensor, row, self.masking.count(self.node, symbol, torch.int64))
        return write(aten.unsqueeze.default, write(aten.logical_and.default, below, write(aten.ge.Scalar, row, 0)), -1)


def _can_move(masking: Masking, node: Node, value: Node, at: int) -> bool:
    """Return whether one dimension alone of a value has a mask, and its windows one as well, or a known number."""
    rest = [extent for dim, extent in enumerate(shape_of_node(value)) if dim != at]
    return (
        bool(masking.sized(value, (at,)))
        and is_place(masking, node, at)
        and all(isinstance(extent, int) for extent in rest)
    )


def convolution(masking: Masking, node: Node) -> bool:
    """Select the rows of each tap, and multiply them by the weight as more channels; other dimensions keep windows."""
    value, weight = cast("tuple[Node, Node]", node.args[:2])
    shape, channels = shape_of_node(value), shape_of_node(weight)
    rank = len(channels) - 2
    sized = masking.sized(value, range(len(shape) - rank, len(shape)))
    if len(sized) != 1 or not all(isinstance(extent, int) for extent in channels):
        return False
    (at,), known = sized, cast("tuple[int, ...]", channels)
    place, settings = at - len(shape) + rank, _settings_of_convolution(node, known[2:])
    if settings is None or not _can_move(masking, node, value, at):
        return False
    taps, (stride, in_front, dilation) = known[2 + place], (of_dims[place] for of_dims in settings)
    windows, write = _Windows(masking, node, value, at, taps, stride, in_front, dilation), partial(masking.before, node)
    windows.note_least()
    rows, channel = list[Node](), len(shape) - rank - 1
    for _, table in windows.tables():
        rest = [extent for dim, extent in enumerate(shape) if dim != at]
        one = write(aten.movedim.int, write(aten.reshape.default, table, [-1, *rest]), 0, at)
        rows.append(write(aten.unsqueeze.default, one, channel + 1))
    merged: list[Any] = [-1 if dim == at else extent for dim, extent in enumerate(shape)]
    merged[channel] *= taps
    given = write(aten.reshape.default, write(aten.cat.default, rows, channel + 1), merged)
    others = [extent for dim, extent in enumerate(known[2:]) if dim != place]
    turned = weight if place == 0 else write(aten.movedim.int, weight, 2 + place, 2)
    one_row = [*others[:place], 1, *others[place:]]
    by_row = write(aten.reshape.default, turned, [known[0], known[1] * taps, *one_row])
    steps, around, apart = (
        [least if dim == place else n for dim, n in enumerate(of_dims)]
        for of_dims, least in zip(settings, (1, 0, 1), strict=True)
    )
    convolve = aten.conv1d.default if rank == 1 else aten.conv2d.default
    replace(
        node,
        write(convolve, given, by_row, argument_of(node, "bias"), steps, around, apart, argument_of(node, "groups")),
    )
    return True


def _settings_of_convolution(node: Node, kernel: Sequence[int]) -> tuple[list[int], list[int], list[int]] | None:
    """The strides, rows in front, and dilations by dimension; None if another dimension has one more row behind."""
    rank, padding = len(kernel), argument_of(node, "padding")
    stride, dilation = (_for_each(argument_of(node, name), rank) for name in ("stride", "dilation"))
    if not isinstance(padding, str):
        return stride, _for_each(padding, rank), dilation
    reach = [apart * (taps - 1) for apart, taps in zip(dilation, kernel, strict=True)]
    if padding == "same" and rank > 1 and any(rows % 2 for rows in reach):
        return None
    return stride, [rows // 2 if padding == "same" else 0 for rows in reach], dilation  # torch: an odd one is behind


def unfold(masking: Masking, node: Node) -> bool:
    """Select the rows of each tap, and put them behind each other in a dimension of their own."""
    value, dim, taps, stride = cast("tuple[Node, int, object, int]", node.args)
    at = dim % max(len(shape_of_node(value)), 1)
    if not isinstance(taps, int) or not _can_move(masking, node, value, at):
        return False
    windows = _Windows(masking, node, value, at, taps, stride)
    windows.note_least()
    write, rest = partial(masking.before, node), [n for d, n in enumerate(shape_of_node(value)) if d != at]
    stacked = write(aten.stack.default, [table for _, table in windows.tables()], -1)
    replace(node, write(aten.movedim.int, write(aten.reshape.default, stacked, [-1, *rest, taps]), 0, at))
    return True


def pool(masking: Masking, node: Node) -> bool:
    """Take the largest rows of all taps, or their mean; along another dimension, the operator itself does."""
    value, rank = cast(Node, node.args[0]), 1 if node.target is aten.avg_pool1d.default else 2
    dims = range(len(shape_of_node(value)) - rank, len(shape_of_node(value)))
    sized = masking.sized(value, dims)
    if len(sized) != 1 or argument_of(node, "ceil_mode") or argument_of(node, "divisor_override") is not None:
        return False
    (at,) = sized
    if not _can_move(masking, node, value, at):
        return False
    place, settings = at - dims[0], _settings(node, rank)
    taps, stride, in_front, dilation = (of_dims[place] for of_dims in settings)
    windows = _Windows(masking, node, value, at, taps, stride, in_front, dilation)
    if rank > 1:
        windows = replace_fields(windows, value=_along_the_other(masking, node, windows, settings, place))
    windows.note_least()
    made = _largest(windows) if node.target is aten.max_pool2d.default else _mean(windows)
    shaped(masking, node, made, at)
    return True


_Settings = tuple[list[int], list[int], list[int], list[int]]


def _settings(node: Node, rank: int) -> _Settings:
    """The kernel, strides, padding and dilation of a pool, by dimension."""
    kernel, padding = (_for_each(argument_of(node, name), rank) for name in ("kernel_size", "padding"))
    return (
        kernel,
        _for_each(argument_of(node, "stride") or kernel, rank),
        padding,
        _for_each(argument_of(node, "dilation") or 1, rank),
    )


def _for_each(setting: Any, rank: int) -> list[int]:
    listed = [int(n) for n in cast("Sequence[int]", setting)] if isinstance(setting, Sequence) else [int(setting)]
    return listed * rank if len(listed) == 1 else listed


def _along_the_other(masking: Masking, node: Node, windows: _Windows, settings: _Settings, place: int) -> Node:
    """The value with its other dimension pooled."""
    kernel, stride, padding, dilation = (list(of_dims) for of_dims in settings)
    kernel[place], stride[place], padding[place], dilation[place] = 1, 1, 0, 1
    largest = node.target is aten.max_pool2d.default
    others = [dilation, False] if largest else [False, argument_of(node, "count_include_pad")]
    made = masking.before(node, cast(Any, node.target), windows.value, kernel, stride, padding, *others)
    known = windows.value.meta["val"]
    other = windows.at + (1 if place == 0 else -1)
    made.meta["val"] = known.new_empty([*known.shape[:other], shape_of_node(node)[other], *known.shape[other + 1 :]])
    return made


def _largest(windows: _Windows) -> Node:
    write, least = partial(windows.masking.before, windows.node), of_type(-inf, windows.value.meta["val"].dtype)
    made: Node | None = None
    for first, table in windows.tables():
        rows = write(aten.where.ScalarOther, windows.inside(first), table, least)
        made = rows if made is None else write(aten.maximum.default, made, rows)
    assert made is not None
    return made


def _mean(windows: _Windows) -> Node:
    write, dtype = partial(windows.masking.before, windows.node), windows.value.meta["val"].dtype
    total: Node | None = None
    number: Node | None = None
    for first, table in windows.tables():
        total = table if total is None else write(aten.add.Tensor, total, table)
        one = write(aten.to.dtype, windows.inside(first), dtype)
        number = one if number is None else write(aten.add.Tensor, number, one)
    assert total is not None and number is not None
    if argument_of(windows.node, "count_include_pad"):
        return write(aten.div.Scalar, total, windows.taps)
    return write(aten.div.Tensor, total, write(aten.clamp_min.default, number, 1))


__all__ = ["CONVOLUTIONS", "convolution", "pool", "unfold"]
