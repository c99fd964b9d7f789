"""Pass `pad-heads`: gives attention heads of 32 or 96 channels whole sticks, by zeros in the weights around attention.

```mlir
%v = aten.linear(%x, %w) : (tensor<8x128x384xf16>, tensor<384x384xf16>) -> tensor<8x128x384xf16>
%heads = aten.view(%v) {size = array<i64: 8, 128, 12, 32>} : (tensor<8x128x384xf16>) -> tensor<8x128x12x32xf16>
```
becomes a layer whose weight has 12 times 64 rows, of which 32 are 0:
```mlir
%v = aten.linear(%x, %padded) : (tensor<8x128x384xf16>, tensor<768x384xf16>) -> tensor<8x128x768xf16>
%heads = aten.view(%v) {size = array<i64: 8, 128, 12, 64>} : (tensor<8x128x768xf16>) -> tensor<8x128x12x64xf16>
```
A stick of 64 numbers that holds parts of two heads is split by inserted kernels that compute nothing; a padded one is
not. The host pads the weights when it lays them out. The zeros of values go on to the layer behind attention, whose
weight has columns of zeros for them; those of queries and keys end in the sum of their products. Where rotary
positions exchange the halves of a head, zeros follow each half, and each is whole sticks.

Decision: docs/decisions/0186-heads-have-whole-sticks.md
Decision: docs/decisions/0176-padded-heads-make-nan-of-infinities.md
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from typing_extensions import override
from xdsl.dialects import func
from xdsl.dialects.builtin import Float32Type
from xdsl.ir import SSAValue

from spyre_mlir.dialects.argument_notes import is_prepared
from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.tensors import element_of, shape_of
from spyre_mlir.hw.formats import DL16
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.hw.sticks import round_up
from spyre_mlir.transforms.aten_forms.recognition.head_channels import (
    ATTENTION,
    LINEAR,
    Heads,
    argument_of,
    heads_of,
    layer_of,
    sliced_columns,
    turning_matrix,
)
from spyre_mlir.transforms.aten_forms.recognition.moved_channels import turn_of
from spyre_mlir.transforms.aten_forms.recognition.rotated_heads import can_move, rotate
from spyre_mlir.transforms.aten_forms.recognition.rotations import rotation_of
from spyre_mlir.transforms.utils.aten_ops import AtenWriter, arguments_of, erase_unread
from spyre_mlir.transforms.utils.function_pass import FunctionPass

_LANES = DL16.elements_per_stick()
# Reads and writes of a number by the kernels that split sticks; with 8, Phi-3 is padded from 107 rows on.
_ACCESSES = 8


@dataclass(frozen=True)
class PadHeadsPass(FunctionPass):
    """Pads the weights of heads that have no whole sticks.

    Attributes:
        keep_float32: float32 tensors are stored as they are, in sticks of half as many elements: their heads stay.
    """

    name = "pad-heads"

    keep_float32: bool = False

    @override
    def rewrite(self, function: func.FuncOp, spec: SpyreSpec) -> None:
        """Pad the heads of a function where this is predicted to gain."""
        for op in reversed(list(function.body.block.ops)):
            if isinstance(op, AtenOp) and op.parent is not None and len(op.results) == 1:
                self._rotate(function, op)
        ops = [o for o in function.body.block.ops if isinstance(o, AtenOp)]
        every = [heads for o in ops if (heads := heads_of(o)) is not None]
        found = [heads for heads in every if self._is_narrowed(heads.linear) and _gains(function, heads)]
        if kept := _with_padded_factors(found):
            _Padding(kept).rewrite(ops)

    def _rotate(self, function: func.FuncOp, op: AtenOp) -> None:
        """Rotate all channels of heads to be padded where a model rotates parts: only whole heads are followed."""
        if (found := rotation_of(op)) is None or not can_move(found.heads):
            return
        layer, channels = layer_of(found.heads), shape_of(found.heads)[-1]
        if layer is None or not self._is_narrowed(layer) or not _are_prepared(function, layer):
            return
        if _pays(layer, channels, round_up(channels, _LANES)):
            rotate(op, found)

    def _is_narrowed(self, layer: AtenOp) -> bool:
        """Whether the device holds what a layer makes as DL16."""
        kept = self.keep_float32 and isinstance(element_of(layer.results[0]), Float32Type)
        return not kept and not layer.is_wide


def _gains(function: func.FuncOp, heads: Heads) -> bool:
    """Whether padding saves more traffic than the weight grows by, and the host lays out all weights at load."""
    layers = [heads.linear, *(o for o in heads.steps if o.overload == LINEAR and turning_matrix(o) is None)]
    prepared = all(_are_prepared(function, layer) for layer in layers)
    return prepared and _pays(heads.linear, heads.channels, _full(heads))


def _are_prepared(function: func.FuncOp, layer: AtenOp) -> bool:
    """Whether the host lays out the weight and the bias of a layer at load."""
    arguments = [argument_of(v) for v in layer.operands[1:]]
    return all(a is not None and is_prepared(function, a) for a in arguments)


def _pays(layer: AtenOp, channels: int, padded: int) -> bool:
    """Whether it saves traffic to pad the heads of a layer from some channels to more."""
    *rows, _ = shape_of(layer.results[0])
    summed = shape_of(layer.operands[0])[-1]
    # Where heads are narrower than half a stick, most of what is computed would be zeros.
    if channels % _LANES == 0 or padded > 2 * channels:
        return False
    return prod(rows) * channels * _ACCESSES > (padded - channels) * summed


def _full(heads: Heads) -> int:
    """How many channels a padded head has."""
    return heads.channels // heads.unit * round_up(heads.unit, _LANES)


def _with_padded_factors(found: list[Heads]) -> list[Heads]:
    """The heads whose products over channels have both factors padded alike; without some, others lose theirs.

    Heads that are multiplied by others, channel by channel, are left out: they may have their zeros elsewhere.
    """
    while True:
        axes = {value: (axis, heads.unit) for heads in found for value, axis in heads.axes.items()}
        kept = [
            heads
            for heads in found
            if all(axes.get(v) == (axis, heads.unit) for v, axis in heads.met) and not heads.tables & axes.keys()
        ]
        if len(kept) == len(found):
            return kept
        found = kept


class _Padding:
    """Rewrite of the ops that write or read the channels of heads."""

    def __init__(self, found: list[Heads]) -> None:
        """Takes heads of one function, both factors of their products among them."""
        self._by_view = {heads.view: heads for heads in found}
        self._axes = {value: (axis, heads) for heads in found for value, axis in heads.axes.items()}
        self._joined = {value: heads for heads in found for value in heads.joined}
        self._steps = {op for heads in found for op in heads.steps}
        self._layers = {heads.linear for heads in found}
        self._turns = {op for heads in found for op in heads.turns}
        self._new = dict[SSAValue, SSAValue]()

    def rewrite(self, ops: list[AtenOp]) -> None:
        """Replace the ops of a function, given in their order."""
        for op in ops:
            if (taken := self._other_columns(op)) is not None:
                op.results[0].replace_all_uses_with(self._layer(AtenWriter(op), *taken))
            elif op in self._by_view:
                self._new[op.results[0]] = self._padded_view(op, self._by_view[op])
            elif op in self._steps:
                made = self._padded_op(op)
                if op.results[0] in self._axes or op.results[0] in self._joined:
                    self._new[op.results[0]] = made
                else:
                    op.results[0].replace_all_uses_with(made)
        for op in reversed(ops):
            if op in self._by_view or op in self._steps or self._other_columns(op) is not None:
                erase_unread(op)

    def _other_columns(self, op: AtenOp) -> tuple[AtenOp, tuple[int, int]] | None:
        """The layer and the columns of a slice that takes columns other than those of heads; None for another op."""
        taken = sliced_columns(op)
        layer = op.operands[0].owner if taken is not None else None
        if taken is None or not isinstance(layer, AtenOp) or layer not in self._layers:
            return None
        return None if any(use.operation in self._by_view for use in op.results[0].uses) else (layer, taken)

    def _padded_view(self, op: AtenOp, heads: Heads) -> SSAValue:
        """The padded heads, from a layer of their own."""
        writer = AtenWriter(op)
        columns = self._layer(writer, heads.linear, (heads.first, heads.end), heads.unit)
        *size, _ = shape_of(op.results[0])
        return writer.call("view", self=columns, size=(*size, _full(heads)))

    def _layer(self, writer: AtenWriter, layer: AtenOp, taken: tuple[int, int], channels: int = 0) -> SSAValue:
        """A layer of some columns; with `channels`, zeros follow so many of them, again and again."""
        args = arguments_of(layer)
        for name in ("weight", "bias"):
            if (given := args[name]) is not None:
                part = _rows(writer, given, taken)
                args[name] = _padded(writer, part, 0, channels) if channels else part
        return writer.call(LINEAR, layer, **args)

    def _padded_op(self, op: AtenOp) -> SSAValue:
        """The same op on padded operands."""
        if op.overload == "cat":
            return self._joined_halves(op)
        if (matrix := turning_matrix(op)) is not None:
            return self._turned(op, matrix)
        args = arguments_of(op)
        names = [name for name, value in args.items() if isinstance(value, SSAValue)]
        weight = args.get("weight")
        result, writer = op.results[0], AtenWriter(op)
        if op.overload == "mul.Tensor" and len(names) == 2:
            unit = self._axes[result][1].unit
            for name in (name for name in names if args[name] not in self._new):
                args[name] = _padded(writer, args[name], len(shape_of(args[name])) - 1, unit)
        args |= {name: self._new.get(args[name], args[name]) for name in names}
        if op.overload in ("view", "expand"):
            args["size"] = self._size(result)
        if op.overload == ATTENTION and args["scale"] is None:
            args["scale"] = shape_of(op.operands[0])[-1] ** -0.5
        if op.overload == LINEAR and weight is not None:
            args["weight"] = _padded(writer, weight, 1, self._joined[op.operands[0]].unit)
        return writer.call(op.overload, op, **args)

    def _turned(self, op: AtenOp, matrix: AtenOp) -> SSAValue:
        """The product that turns channels, with a matrix of padded heads; zeros come to zeros, or get the factor 0."""
        writer, heads = AtenWriter(op), self._new[op.operands[0]]
        size = (shape_of(heads)[-1],) * 2
        larger = writer.call(matrix.overload, matrix, **{**matrix.arguments(), "size": size})
        return writer.call(LINEAR, op, input=heads, weight=larger)

    def _joined_halves(self, op: AtenOp) -> SSAValue:
        """Halves of padded heads that change places, of whole sticks; heads alone if op appends nothing."""
        if op not in self._turns or (turn := turn_of(op)) is None:
            return next(self._new[v] for v in op.operands if v in self._new)
        writer, heads = AtenWriter(op), self._new[turn[0]]
        full = shape_of(heads)[-1]
        first, second = (
            writer.call("slice.Tensor", self=heads, dim=-1, start=start, end=start + full // 2, step=1)
            for start in (0, full // 2)
        )
        return writer.call("cat", tensors=[writer.call("neg", self=second), first], dim=-1)

    def _size(self, value: SSAValue) -> tuple[int, ...]:
        """The shape of a tensor with padded channels."""
        size = list(shape_of(value))
        if value in self._joined:
            heads = self._joined[value]
            size[-1] = size[-1] // heads.channels * _full(heads)
        else:
            axis, heads = self._axes[value]
            size[axis] = _full(heads)
        return tuple(size)


def _rows(writer: AtenWriter, weight: SSAValue, taken: tuple[int, int]) -> SSAValue:
    """The rows of a weight, columns of its layer, from `taken[0]` to `taken[1]`."""
    first, end = taken
    if taken == (0, shape_of(weight)[0]):
        return weight
    return writer.moved("slice.Tensor", weight, dim=0, start=first, end=end, step=1)


def _padded(writer: AtenWriter, weight: SSAValue, dim: int, channels: int) -> SSAValue:
    """A weight with zeros after so many channels, along its dimension of channels; the host makes it."""
    shape, full = shape_of(weight), round_up(channels, _LANES)
    before, heads, behind = shape[:dim], shape[dim] // channels, shape[dim + 1 :]
    pad = (0, 0) * len(behind) + (0, full - channels)
    parted = writer.moved("view", weight, size=(*before, heads, channels, *behind))
    padded = writer.moved("constant_pad_nd", parted, pad=pad, value=0)
    return writer.moved("view", padded, size=(*before, heads * full, *behind))


__all__ = ["PadHeadsPass"]
