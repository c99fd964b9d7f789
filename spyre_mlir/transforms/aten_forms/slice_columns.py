"""Pass `slice-columns`: slices the columns of a product where a model splits them by a view and selects.

```mlir
%y = aten.linear(%x, %w) : (tensor<2x197x192xf16>, tensor<576x192xf16>) -> tensor<2x197x576xf16>
%parted = aten.view(%y) {size = array<i64: 2, 197, 3, 6, 32>} : (...) -> tensor<2x197x3x6x32xf16>
%moved = aten.permute(%parted) {dims = array<i64: 2, 0, 3, 1, 4>} : (...) -> tensor<3x2x6x197x32xf16>
%q = aten.select.int(%moved) {dim = 0, index = 0} : (tensor<3x2x6x197x32xf16>) -> tensor<2x6x197x32xf16>
```
becomes
```mlir
%columns = aten.slice.Tensor(%y) {dim = -1, start = 0, end = 192} : (tensor<2x197x576xf16>) -> tensor<2x197x192xf16>
%heads = aten.view(%columns) {size = array<i64: 2, 197, 6, 32>} : (...) -> tensor<2x197x6x32xf16>
%q = aten.permute(%heads) {dims = array<i64: 0, 2, 1, 3>} : (...) -> tensor<2x6x197x32xf16>
```
`nn.MultiheadAttention` and vision transformers have queries, keys and values in one product, and take them apart so,
or by slices of one place, which `unbind` and `chunk` become. The passes behind this one, which pad heads and split
products, find slices alone.

Decision: docs/decisions/0186-heads-have-whole-sticks.md
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

from typing_extensions import override
from xdsl.dialects import func
from xdsl.ir import SSAValue

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.tensors import shape_of
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.transforms.utils.aten_ops import AtenWriter, arguments_of, erase_unread, is_open
from spyre_mlir.transforms.utils.function_pass import FunctionPass

_LINEAR, _SELECT, _SLICE = "linear", "select.int", "slice.Tensor"


@dataclass(frozen=True)
class SliceColumnsPass(FunctionPass):
    """Slices the columns of products that selections take apart."""

    name = "slice-columns"

    @override
    def rewrite(self, function: func.FuncOp, spec: SpyreSpec) -> None:
        """Rewrite the readers of every linear layer."""
        for layer in list(function.body.block.ops):
            if isinstance(layer, AtenOp) and layer.overload == _LINEAR and is_open(layer):
                for selected in _selections(layer):
                    _slice(layer, selected)


@dataclass(frozen=True)
class _Selected:
    """One of equal parts of a layer's columns, as a reader selects it.

    Attributes:
        reader: the selection, or a slice of one place.
        rows: the number of dimensions in front of the columns.
        parts: extents into which the columns are split; the reader selects a place of the first.
        dims: by dimension of what the reader reads, the dimension of the layer's result with its columns split;
            None for one of extent 1 that was added.
    """

    reader: AtenOp
    rows: int
    parts: tuple[int, ...]
    dims: tuple[int | None, ...]

    @property
    def is_parted(self) -> bool:
        """Return whether the columns are split."""
        return len(self.parts) > 1

    @property
    def place(self) -> int:
        """The place that the reader selects."""
        args = arguments_of(self.reader)
        first: int = args["index" if self.reader.overload == _SELECT else "start"] or 0
        return first % self.parts[0]

    @property
    def order(self) -> list[int]:
        """The dimensions of the columns selected, split, in the order in which the reader has them.

        Those that were squeezed are the last ones.
        """
        kept = [d for d in self.dims if d is not None and d != self.rows]
        every = [d for d in range(self.rows + len(self.parts)) if d != self.rows]
        return [every.index(d) for d in (*kept, *(d for d in every if d not in kept))]


def _selections(layer: AtenOp) -> list[_Selected]:
    """The selections that take the columns of a layer apart; none if something else reads them, too."""
    shape = shape_of(layer.results[0])
    whole = _Selected(layer, len(shape) - 1, shape[-1:], tuple(range(len(shape))))
    found = list(_readers(layer.results[0], whole))
    taken = [one for one in found if one is not None]
    return taken if len(taken) == len(found) > 1 else []


def _readers(value: SSAValue, so_far: _Selected) -> Iterator[_Selected | None]:
    """What each reader of a tensor selects; None for one that selects no part of the columns."""
    for use in value.uses:
        op = use.operation
        if not isinstance(op, AtenOp) or not is_open(op) or len(op.results) != 1:
            yield None
        elif op.overload == _SELECT or (op.overload == _SLICE and so_far.is_parted):
            yield replace(so_far, reader=op) if _takes_one(op, so_far) else None
        elif (after := _behind(op, so_far)) is None:
            yield None
        else:
            yield from _readers(op.results[0], after)


def _takes_one(op: AtenOp, so_far: _Selected) -> bool:
    """Whether a selection or a slice takes one place of the first part of the columns."""
    at: int = arguments_of(op)["dim"] % len(so_far.dims)
    if not so_far.is_parted or so_far.dims[at] != so_far.rows:
        return False
    return op.overload == _SELECT or shape_of(op.results[0])[at] == 1


def _behind(op: AtenOp, so_far: _Selected) -> _Selected | None:
    """Where dimensions are behind an op that moves them; None for another op."""
    shape, made, dims, rows = shape_of(op.operands[0]), shape_of(op.results[0]), so_far.dims, so_far.rows
    match op.overload:
        case "clone":
            return so_far
        case "permute":
            order: tuple[int, ...] = arguments_of(op)["dims"]
            return replace(so_far, dims=tuple(dims[d] for d in order))
        case "unsqueeze":
            at: int = arguments_of(op)["dim"] % len(made)
            return replace(so_far, dims=(*dims[:at], None, *dims[at:]))
        case "squeeze.dims":
            gone = {d % len(shape) for d in arguments_of(op)["dim"]}
            kept = [d for n, d in enumerate(dims) if n not in gone or shape[n] != 1]
            return replace(so_far, dims=tuple(kept)) if rows in kept else None
        case "view" if dims == tuple(range(rows + 1)) and made[:rows] == shape[:rows] and len(made) > rows + 1:
            return replace(so_far, parts=made[rows:], dims=tuple(range(len(made))))
        case _:
            return None


def _slice(layer: AtenOp, selected: _Selected) -> None:
    """Put a slice of a layer's result, moved like what the reader reads, in the place of a reader."""
    result, writer = selected.reader.results[0], AtenWriter(selected.reader)
    width, first = prod(selected.parts[1:]), selected.place * prod(selected.parts[1:])
    value = writer.call("slice.Tensor", self=layer.results[0], dim=-1, start=first, end=first + width, step=1)
    value = writer.viewed(value, (*shape_of(value)[:-1], *selected.parts[1:]))
    if (order := selected.order) != sorted(order):
        value = writer.call("permute", self=value, dims=order)
    result.replace_all_uses_with(writer.viewed(value, shape_of(result)))
    erase_unread(selected.reader)


__all__ = ["SliceColumnsPass"]
