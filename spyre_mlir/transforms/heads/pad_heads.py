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
Kernels that compute nothing divide a stick of 64 numbers that has parts of two heads. The host pads the weights
when it lays them out. Values keep their zeros up to the layer behind attention, whose weight has columns of zeros for
them; queries and keys have theirs up to the sum of their products.

Decision: docs/decisions/0186-heads-have-whole-sticks.md
Decision: docs/decisions/0176-padded-heads-make-nan-of-infinities.md
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from typing_extensions import override
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import Float16Type, ModuleOp, UnitAttr
from xdsl.ir import BlockArgument, SSAValue
from xdsl.passes import ModulePass

from spyre_mlir.dialects.argument_notes import PREPARED_KINDS, kind_of, new_values
from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.aten_arguments import WIDENED
from spyre_mlir.dialects.tensors import element_of, shape_of
from spyre_mlir.hw.formats import DL16
from spyre_mlir.hw.sticks import round_up
from spyre_mlir.transforms.heads.head_channels import ATTENTION, LINEAR, Heads, heads_of, slice_of_layer
from spyre_mlir.transforms.utils.aten_ops import AtenWriter, erase_unread
from spyre_mlir.transforms.utils.rebuild import functions

_LANES = DL16.elements_per_stick()
# How often kernels that divide sticks read or write a number: Phi-3 gains from about 110 rows on.
_PASSES = 8


@dataclass(frozen=True)
class PadHeadsPass(ModulePass):
    """Pads the weights of heads that have no whole sticks.

    Attributes:
        enabled: whether it does.
    """

    name = "pad-heads"

    enabled: bool = True

    @override
    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Pad all heads that gain."""
        for function in functions(op) if self.enabled else ():
            ops = [o for o in function.body.block.ops if isinstance(o, AtenOp)]
            found = [heads for o in ops if (heads := heads_of(o)) is not None and _gains(function, heads)]
            if kept := _complete(found):
                _Padding(kept).rewrite(ops)


def _gains(function: func.FuncOp, heads: Heads) -> bool:
    """Whether what is not moved any more is more than what the weight grows by, and the weight is laid out at load."""
    layers = [heads.linear, *(o for o in heads.steps if o.overload == LINEAR)]
    written = new_values(function)
    for value in (v for layer in layers for v in layer.operands[1:]):
        number = value.index if isinstance(value, BlockArgument) else -1
        if number < 0 or kind_of(function, number) not in PREPARED_KINDS or number in written:
            return False
    *rows, _ = shape_of(heads.linear.results[0])
    summed, padded = shape_of(heads.linear.operands[0])[-1], round_up(heads.channels, _LANES)
    # Where heads are narrower than half a stick, most of what is computed would be zeros.
    if heads.channels % _LANES == 0 or padded > 2 * heads.channels:
        return False
    if not isinstance(element_of(heads.linear.results[0]), Float16Type):
        return False
    return prod(rows) * heads.channels * _PASSES > (padded - heads.channels) * summed


def _complete(found: list[Heads]) -> list[Heads]:
    """Those of which all factors of sums over channels are padded as well, and all or none parts of a layer."""
    while True:
        axes = {value: axis for heads in found for value, axis in heads.axes.items()}
        kept = [heads for heads in found if all(axes.get(value) == axis for value, axis in heads.met)]
        if len(kept) == len(found):
            return kept
        found = kept


class _Padding:
    """Rewrites the ops around some heads."""

    def __init__(self, found: list[Heads]) -> None:
        """Takes heads whose sums have both factors."""
        self._by_view = {heads.view: heads for heads in found}
        self._axes = {value: (axis, heads) for heads in found for value, axis in heads.axes.items()}
        self._joined = {value: heads for heads in found for value in heads.joined}
        self._steps = {op for heads in found for op in heads.steps}
        self._layers = {heads.linear for heads in found}
        self._new = dict[SSAValue, SSAValue]()

    def rewrite(self, ops: list[AtenOp]) -> None:
        """Replace the ops, which are in order."""
        for op in ops:
            if (taken := self._left(op)) is not None:
                op.results[0].replace_all_uses_with(self._layer(AtenWriter(op), *taken))
            elif op in self._by_view:
                self._new[op.results[0]] = self._parted(op, self._by_view[op])
            elif op in self._steps:
                made = self._made(op)
                if op.results[0] in self._axes or op.results[0] in self._joined:
                    self._new[op.results[0]] = made
                else:
                    op.results[0].replace_all_uses_with(made)
        for op in reversed(ops):
            if op in self._by_view or op in self._steps or self._left(op) is not None:
                erase_unread(op)

    def _left(self, op: AtenOp) -> tuple[AtenOp, tuple[int, int]] | None:
        """The layer and the columns of an op that reads other columns of a layer than those of heads."""
        taken = slice_of_layer(op)
        layer = op.operands[0].owner if taken is not None else None
        if taken is None or not isinstance(layer, AtenOp) or layer not in self._layers:
            return None
        return None if any(use.operation in self._by_view for use in op.results[0].uses) else (layer, taken)

    def _parted(self, op: AtenOp, heads: Heads) -> SSAValue:
        """The heads, from a layer of their own."""
        writer = AtenWriter(op)
        columns = self._layer(writer, heads.linear, (heads.first, heads.end), heads.channels)
        *size, _ = shape_of(op.results[0])
        return writer.call("view", self=columns, size=(*size, round_up(heads.channels, _LANES)))

    def _layer(self, writer: AtenWriter, layer: AtenOp, taken: tuple[int, int], channels: int = 0) -> SSAValue:
        """Some columns of a layer, with zeros after so many channels if they are of heads."""
        said: dict[str, Any] = dict(layer.arguments())
        for name in ("weight", "bias"):
            if (given := said[name]) is not None:
                part = _rows(writer, given, taken)
                said[name] = _padded(writer, part, 0, channels) if channels else part
        return writer.call(LINEAR, layer, **said)

    def _made(self, op: AtenOp) -> SSAValue:
        """An op on padded channels."""
        said: dict[str, Any] = dict(op.arguments())
        names = [name for name, value in said.items() if isinstance(value, SSAValue)]
        weight = said.get("weight")
        said |= {name: self._new.get(said[name], said[name]) for name in names}
        result, writer = op.results[0], AtenWriter(op)
        if op.overload in ("view", "expand"):
            said["size"] = self._size(result)
        if op.overload == ATTENTION and said["scale"] is None:
            said["scale"] = shape_of(op.operands[0])[-1] ** -0.5
        if op.overload == LINEAR and weight is not None:
            said["weight"] = _padded(writer, weight, 1, self._joined[op.operands[0]].channels)
        return writer.call(op.overload, op, **said)

    def _size(self, value: SSAValue) -> tuple[int, ...]:
        size = list(shape_of(value))
        if value in self._joined:
            channels = self._joined[value].channels
            size[-1] = size[-1] // channels * round_up(channels, _LANES)
        else:
            axis, heads = self._axes[value]
            size[axis] = round_up(heads.channels, _LANES)
        return tuple(size)


def _rows(writer: AtenWriter, weight: SSAValue, taken: tuple[int, int]) -> SSAValue:
    """Some rows of a weight."""
    first, end = taken
    if taken == (0, shape_of(weight)[0]):
        return weight
    return _moved(writer, "slice.Tensor", weight, dim=0, start=first, end=end, step=1)


def _padded(writer: AtenWriter, weight: SSAValue, dim: int, channels: int) -> SSAValue:
    """A weight with zeros after the channels of each head, along its dimension of channels; the host makes it."""
    shape, full = shape_of(weight), round_up(channels, _LANES)
    before, heads, behind = shape[:dim], shape[dim] // channels, shape[dim + 1 :]
    pad = (0, 0) * len(behind) + (0, full - channels)
    parted = _moved(writer, "view", weight, size=(*before, heads, channels, *behind))
    padded = _moved(writer, "constant_pad_nd", parted, pad=pad, value=0)
    return _moved(writer, "view", padded, size=(*before, heads * full, *behind))


def _moved(writer: AtenWriter, overload: str, weight: SSAValue, **said: Any) -> SSAValue:
    made = writer.call(overload, self=weight, **said)
    if isinstance(made.owner, AtenOp):
        made.owner.attributes[WIDENED] = UnitAttr()
    return made


__all__ = ["PadHeadsPass"]
