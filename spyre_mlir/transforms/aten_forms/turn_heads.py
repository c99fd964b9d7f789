"""Pass `turn-heads`: turns the channels of attention heads by a product, where their halves are no whole sticks.

```mlir
%first = aten.slice.Tensor(%x) {dim = 3, start = 0, end = 32} : (tensor<1x32x512x64xf16>) -> tensor<1x32x512x32xf16>
%second = aten.slice.Tensor(%x) {dim = 3, start = 32, end = 64} : (tensor<1x32x512x64xf16>) -> tensor<1x32x512x32xf16>
%minus = aten.neg(%second) : (tensor<1x32x512x32xf16>) -> tensor<1x32x512x32xf16>
%turned = aten.cat(%minus, %first) {dim = -1} : (...) -> tensor<1x32x512x64xf16>
```
becomes a product with a matrix that has one 1 or -1 in each row:
```mlir
%matrix = aten.call "spyre::resample" {size = [64, 64], mode = "turned", scale = 32.0} : () -> tensor<64x64xf16>
%turned = aten.linear(%x, %matrix) : (tensor<1x32x512x64xf16>, tensor<64x64xf16>) -> tensor<1x32x512x64xf16>
```
Rotary positions turn queries and keys so, by halves or in pairs of neighbours (`stack` of every other channel). The
device moves channels within a stick by laying the tensor out twice; a product takes a small part of that time.

Where a model rotates some channels and leaves the rest, or computes the halves apart, the parts of a head are no whole
sticks either. All channels are rotated then, `%x * %cos + %turned * %sin`, by tables that have a 1 and a 0 for channels
that stay.

Decision: docs/decisions/0187-rotary-positions-are-products.md
"""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override
from xdsl.dialects import func

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.tensors import shape_of
from spyre_mlir.hw.formats import DL16
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.transforms.aten_forms.recognition.moved_channels import turn_of
from spyre_mlir.transforms.aten_forms.recognition.rotated_heads import can_move, moved_heads, rotate
from spyre_mlir.transforms.aten_forms.recognition.rotations import rotation_of
from spyre_mlir.transforms.utils.aten_ops import AtenWriter, erase_unread
from spyre_mlir.transforms.utils.function_pass import FunctionPass

_LANES = DL16.elements_per_stick()


@dataclass(frozen=True)
class TurnHeadsPass(FunctionPass):
    """Writes turned channels as products."""

    name = "turn-heads"

    @override
    def rewrite(self, function: func.FuncOp, spec: SpyreSpec) -> None:
        """Rewrite every turn that moves channels within sticks of heads that have whole ones."""
        ops = [o for o in function.body.block.ops if isinstance(o, AtenOp)]
        for op in reversed(ops):
            if op.parent is not None and len(op.results) == 1 and not _rotate(op):
                _turn(op)


def _turn(op: AtenOp) -> None:
    if (found := turn_of(op)) is None:
        return
    heads, distance = found
    if distance % _LANES and shape_of(heads)[-1] % _LANES == 0 and can_move(heads):
        op.results[0].replace_all_uses_with(moved_heads(AtenWriter(op), heads, "turned", distance))
        erase_unread(op)


def _rotate(op: AtenOp) -> bool:
    """Rotate all channels of heads where a model rotates parts; return whether it does."""
    found = rotation_of(op)
    if found is None or not found.within_sticks or len(found.own) % _LANES or not can_move(found.heads):
        return False
    return rotate(op, found)


__all__ = ["TurnHeadsPass"]
