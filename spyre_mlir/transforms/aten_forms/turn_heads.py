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

Decision: docs/decisions/0187-rotary-positions-are-products.md
"""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override
from xdsl.dialects import func
from xdsl.dialects.builtin import BFloat16Type, Float16Type, f32
from xdsl.ir import SSAValue

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.spyre.hints import hint_of
from spyre_mlir.dialects.tensors import element_of, shape_of
from spyre_mlir.hw.formats import DL16
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.transforms.aten_forms.recognition.moved_channels import turn_of
from spyre_mlir.transforms.utils.aten_ops import AtenWriter, erase_unread
from spyre_mlir.transforms.utils.function_pass import FunctionPass

_LANES = DL16.elements_per_stick()
# A product of more channels has a matrix that is no longer small beside them.
_MOST = 4 * _LANES
_WIDENING = "_to_copy"


@dataclass(frozen=True)
class TurnHeadsPass(FunctionPass):
    """Writes turned channels as products."""

    name = "turn-heads"

    @override
    def rewrite(self, function: func.FuncOp, spec: SpyreSpec) -> None:
        """Rewrite every turn that moves channels within sticks."""
        ops = [o for o in function.body.block.ops if isinstance(o, AtenOp)]
        for op in reversed(ops):
            if op.parent is not None and len(op.results) == 1:
                _turn(op)


def _turn(op: AtenOp) -> None:
    turned = op.results[0]
    if (found := turn_of(op)) is None:
        return
    heads, distance = found
    widened = _widened(heads)
    narrow = heads if widened is None else widened.operands[0]
    channels = shape_of(heads)[-1]
    if not isinstance(element_of(narrow), Float16Type | BFloat16Type) or not _gains(channels, distance):
        return
    writer = AtenWriter(op)
    made = _product(writer, narrow, distance)
    if widened is not None:
        made = writer.call(_WIDENING, widened, **{**widened.arguments(), "self": made})
    turned.replace_all_uses_with(made)
    erase_unread(op)


def _gains(channels: int, distance: int) -> bool:
    """Whether channels move within sticks, and heads have whole ones."""
    return distance % _LANES != 0 and channels % _LANES == 0 and channels <= _MOST


def _widened(heads: SSAValue) -> AtenOp | None:
    """The op that widens heads to float32, before which they can be turned as well as behind it."""
    op = heads.owner
    if not isinstance(op, AtenOp) or op.overload != _WIDENING or element_of(heads) != f32:
        return None
    return op if hint_of(op) is None and not op.on_host else None


def _product(writer: AtenWriter, heads: SSAValue, distance: int) -> SSAValue:
    size, element = (shape_of(heads)[-1],) * 2, str(element_of(heads))
    matrix = writer.call("spyre::resample", size=size, mode="turned", scale=float(distance), dtype=element)
    turned = writer.call("linear", input=heads, weight=matrix)
    for made in (matrix.owner, turned.owner):
        if isinstance(made, AtenOp):
            made.wide = None
    return turned


__all__ = ["TurnHeadsPass"]
