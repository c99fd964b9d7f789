"""Columns of a product that readers take apart: every other one, or some of each head's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod

import numpy as np
from xdsl.dialects import func
from xdsl.ir import SSAValue

from spyre_mlir.dialects.argument_notes import is_prepared
from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.tensors import shape_of
from spyre_mlir.hw.formats import DL16
from spyre_mlir.ops.composed.nn.grouped_mm import GROUPED_MM
from spyre_mlir.transforms.utils.aten_ops import arguments_of, is_open

LINEAR, GATHER, ADD = "linear", "index.Tensor", "add.Tensor"
SELECT, SLICE = "select.int", "slice.Tensor"
# The dimension of a weight that counts the columns of the product.
COLUMNS = {LINEAR: 0, GROUPED_MM: 2}


@dataclass(frozen=True)
class Taken:
    """Some columns of a product, as one reader takes them.

    Attributes:
        reader: a slice, or a selection of one place.
        steps: the ops between the product and the reader, in order: a bias, a view, permutations.
        parts: extents of the dimensions into which columns are split.
        axes: by dimension of what the reader reads, the number of a part; None for a dimension of rows.
        axis: the part of which the reader takes some.
        start: the first place taken along that part.
        end: one more than the last.
        step: the distance of places.
    """

    reader: AtenOp
    steps: tuple[AtenOp, ...]
    parts: tuple[int, ...]
    axes: tuple[int | None, ...]
    axis: int = 0
    start: int = 0
    end: int = 0
    step: int = 1

    @property
    def count(self) -> int:
        """How many places are taken along the part."""
        return len(range(self.start, self.end, self.step))

    @property
    def whole_sticks(self) -> bool:
        """Return whether columns that stay side by side are whole sticks."""
        beside = self.parts[self.axis + 1 :]
        return self.count * prod(beside) % DL16.elements_per_stick() == 0

    @property
    def lies_between(self) -> bool:
        """Return whether columns of other readers lie between these, and heads have them in a dimension of their own.

        Slices of the channels of heads start where they are in the whole result, which one product makes sooner.
        """
        own = len(self.parts) == 1 or self.axis < len(self.parts) - 1
        return own and any(after != before + 1 for before, after in pairwise(self.columns))

    @property
    def columns(self) -> list[int]:
        """The numbers of all columns taken, in the order of the product."""
        numbers = np.arange(prod(self.parts)).reshape(self.parts)
        return numbers.take(range(self.start, self.end, self.step), self.axis).ravel().tolist()


def taken_columns(function: func.FuncOp, product: AtenOp) -> list[Taken]:
    """Return what readers take of a product, if weights for each part of its columns can be made at load.

    The list is empty unless all readers take columns, each another part, and other columns lie between those of a part;
    parts of adjoining sticks are left to the pass `split-products`.
    """
    dim = COLUMNS.get(product.overload)
    if dim is None or not _plain(product) or not _own(function, arguments_of(product)["weight"]):
        return []
    bias = arguments_of(product).get("bias")
    if bias is not None and not _own(function, bias):
        return []
    result = product.results[0]
    shape = shape_of(result)
    nothing = Taken(product, (), shape[-1:], (*(None,) * (len(shape) - 1), 0))
    found = list(_readers(function, result, nothing))
    taken = [part for part in found if part is not None]
    numbers = [part.columns for part in taken]
    every = [n for part in numbers for n in part]
    apart = len(taken) == len(found) > 1 and len(set(every)) == len(every)
    return taken if apart and all(part.whole_sticks and part.lies_between for part in taken) else []


def _plain(op: AtenOp) -> bool:
    return is_open(op) and len(op.results) == 1


def _own(function: func.FuncOp, weight: SSAValue) -> bool:
    """Whether a weight is laid out at load, for one reader."""
    return is_prepared(function, weight) and len(list(weight.uses)) == 1


def _readers(function: func.FuncOp, value: SSAValue, so_far: Taken) -> Iterator[Taken | None]:
    """What each reader of a tensor takes; None for one that takes no part of the columns."""
    for use in value.uses:
        op = use.operation
        if not isinstance(op, AtenOp) or not _plain(op):
            yield None
        elif op.overload in (SLICE, SELECT):
            yield _taken(op, so_far)
        elif (after := _behind(function, op, value, so_far)) is None:
            yield None
        else:
            yield from _readers(function, op.results[0], after)


def _taken(op: AtenOp, so_far: Taken) -> Taken | None:
    args, shape = arguments_of(op), shape_of(op.operands[0])
    dim: int = args["dim"] % len(shape)
    axis = so_far.axes[dim]
    if axis is None:
        return None
    if op.overload == SELECT:
        start: int = args["index"] % shape[dim]
        return replace(so_far, reader=op, axis=axis, start=start, end=start + 1)
    start, end, step = slice(args["start"], args["end"], args["step"]).indices(shape[dim])
    return replace(so_far, reader=op, axis=axis, start=start, end=end, step=step)


def _behind(function: func.FuncOp, op: AtenOp, value: SSAValue, so_far: Taken) -> Taken | None:
    """Where columns are behind an op that moves them or adds a bias; None for another op."""
    shape, made, steps = shape_of(value), shape_of(op.results[0]), (*so_far.steps, op)
    rows, whole = len(shape) - 1, len(so_far.parts) == 1 and so_far.axes[-1] == 0
    match op.overload:
        case "permute":
            dims: tuple[int, ...] = arguments_of(op)["dims"]
            return replace(so_far, steps=steps, axes=tuple(so_far.axes[d] for d in dims))
        case "view" if whole and made[:rows] == shape[:rows]:
            parts = made[rows:]
            return replace(so_far, steps=steps, parts=parts, axes=(*(None,) * rows, *range(len(parts))))
        case "add.Tensor" if whole and made == shape and bias_of(function, op, value) is not None:
            return replace(so_far, steps=steps)
        case _:
            return None


def bias_of(function: func.FuncOp, add: AtenOp, value: SSAValue) -> SSAValue | None:
    """Return the bias of each column that an op adds to a product: a row of a weight for each row; None for another op.

    Args:
        function: has the weight as an argument.
        add: an addition.
        value: the product.
    """
    others = [v for v in add.operands if v is not value]
    if len(others) != 1 or arguments_of(add)["alpha"] != 1:
        return None
    gather = others[0].owner
    if not isinstance(gather, AtenOp) or gather.overload != GATHER or not gather.results[0].has_one_use():
        return None
    table, indices = gather.operands[0], arguments_of(gather)["indices"]
    by_row = len(indices) == 1 and len(shape_of(table)) == 2 and shape_of(others[0]) == shape_of(value)
    return table if by_row and _own(function, table) else None


__all__ = ["ADD", "COLUMNS", "GATHER", "LINEAR", "SELECT", "Taken", "taken_columns"]
