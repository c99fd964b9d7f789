"""Convolutions along a size that data decides: rows in front of the caller's, and behind them, are zeros.

The rows that a window reads are selected by their places, tap by tap, so that padding enters none. What is left is a
convolution of windows of one row, which has as many channels as all taps.

Decision: docs/decisions/0214-results-of-other-sizes-have-sizes-of-their-own.md
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, cast

import torch
from torch.fx import Node

from spyre_mlir.frontend.data_sizes.masking import Masking, argument_of, replace, shape_of_node
from spyre_mlir.frontend.data_sizes.resized import is_place, moved

aten = torch.ops.aten


def convolution(masking: Masking, node: Node) -> bool:
    """Select the rows of each tap, and multiply them by the weight as more channels."""
    value, weight = cast("tuple[Node, Node]", node.args[:2])
    at, shape, channels = len(shape_of_node(value)) - 1, shape_of_node(value), shape_of_node(weight)
    if not masking.sized(value, (at,)) or not is_place(masking, node, len(shape_of_node(node)) - 1):
        return False
    if not all(isinstance(extent, int) for extent in (*shape[:-1], *channels)):
        return False
    taps = cast(int, channels[-1])
    stride, dilation = (_number(argument_of(node, name)) for name in ("stride", "dilation"))
    in_front = _in_front(argument_of(node, "padding"), dilation * (taps - 1))
    write = partial(masking.before, node)
    places = masking.places(node, shape_of_node(node)[-1])
    if stride != 1:
        places = write(aten.mul.Scalar, places, stride)
    # Taps that reach no row of a shorter tensor would select alike, and be one constant.
    (symbol,) = masking.sized(value, (at,)).values()
    reach = max(in_front, (taps - 1) * dilation - in_front)
    masking.least[symbol] = max(masking.least.get(symbol, 0), reach + 1)
    rows = list[Node]()
    for tap in range(taps):
        table = moved(masking, node, value, at, in_front - tap * dilation, places)
        assert table is not None
        one = write(aten.movedim.int, write(aten.reshape.default, table, [-1, *shape[:-1]]), 0, at)
        rows.append(write(aten.unsqueeze.default, one, -2))
    merged = [*shape[:-2], cast(int, shape[-2]) * taps, -1]
    given = write(aten.reshape.default, write(aten.cat.default, rows, -2), merged)
    by_row = write(aten.reshape.default, weight, [channels[0], cast(int, channels[1]) * taps, 1])
    groups = argument_of(node, "groups")
    replace(node, write(aten.conv1d.default, given, by_row, argument_of(node, "bias"), [1], [0], [1], groups))
    return True


def _number(setting: Any) -> int:
    """A setting of the one dimension that windows move along."""
    return int(cast("Sequence[int]", setting)[0]) if isinstance(setting, Sequence) else int(setting)


def _in_front(padding: Any, reach: int) -> int:
    """The number of zeros in front of the rows; torch gives an odd one of "same" to the end."""
    if isinstance(padding, str):
        return reach // 2 if padding == "same" else 0
    return _number(padding)


__all__ = ["convolution"]
