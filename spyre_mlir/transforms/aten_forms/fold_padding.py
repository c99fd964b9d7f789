"""Pass `fold-padding`: makes zeros around an image the padding of the convolution that reads it.

```mlir
%1 = aten.constant_pad_nd(%0) {pad = array<i64: 0, 1, 0, 1>} : (tensor<1x8x6x6xf16>) -> tensor<1x8x7x7xf16>
%2 = aten.conv2d(%1, %w) {stride = array<i64: 2, 2>} : (...) -> tensor<1x8x3x3xf16>
```
becomes one convolution with zeros behind the image only. If as many zeros are before the image as behind it, it becomes
`aten.conv2d` with its usual padding. Models written for TensorFlow pad in this way. A convolution puts its zeros where
they cost least, for example on the core that has the row, and the padded image is never stored.

Padding with another number, that of channels, a negative one, and an image that something else reads, stay.

Decision: docs/decisions/0177-depthwise-convolutions-lie-as-their-neighbours.md
"""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.tensors import element_of, shape_of
from spyre_mlir.ops.annotations import Ints
from spyre_mlir.ops.composed.nn.convolution import CONVOLVE_PADDED
from spyre_mlir.ops.helpers.sliding_windows import spread
from spyre_mlir.transforms.utils.aten_ops import arguments_of, erase_unread, is_open, replace

_PADDING = ".padding"  # overloads whose padding is a word
_CONVOLUTIONS = ("convolution", *(f"conv{rank}d{more}" for rank in (1, 2, 3) for more in ("", _PADDING)))


@dataclass(frozen=True)
class FoldPaddingPass(ModulePass):
    """Folds zeros around an image into the convolution that reads it, if nothing else does."""

    name = "fold-padding"

    @override
    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite every convolution of the module that reads a padded image."""
        for found in list(op.walk()):
            if isinstance(found, AtenOp) and found.overload in _CONVOLUTIONS and not found.on_host:
                _fold(found)


def _fold(op: AtenOp) -> None:
    """Replace a convolution of a padded image by one of the image; a convolution of another image stays."""
    args = arguments_of(op)
    rank, pad = len(shape_of(op.operands[1])) - 2, op.operands[0].owner
    around, inside = _zeros_of(op.operands[0], rank), args["padding"]
    if inside == "valid":
        inside = (0,)
    if around is None or not isinstance(pad, AtenOp) or isinstance(inside, str) or args.get("transposed", False):
        return
    own = spread(inside, rank, (0,))
    before, behind = (tuple(o + z for o, z in zip(own, zeros, strict=True)) for zeros in around)
    bound = {**args, "input": pad.operands[0]}
    if before == behind:
        replace(op, op.overload.removesuffix(_PADDING), {**bound, "padding": before})
    else:
        kept = {name: bound[name] for name in ("input", "weight", "bias", "groups")}
        spreads = {name: spread(args[name], rank) for name in ("stride", "dilation")}
        replace(op, CONVOLVE_PADDED, {**kept, **spreads, "before": before, "behind": behind})
    erase_unread(pad)


def _zeros_of(image: SSAValue, rank: int) -> tuple[Ints, Ints] | None:
    """Zeros before and behind every spatial dimension of an image; None if they cannot be folded."""
    op = image.owner
    if not isinstance(op, AtenOp) or op.overload != "constant_pad_nd" or not is_open(op):
        return None
    args = arguments_of(op)
    pad = (*args["pad"], *(0,) * (2 * rank - len(args["pad"])))
    alone = image.has_one_use() and element_of(op.operands[0]) == element_of(image)
    if args["value"] != 0 or min(pad) < 0 or any(pad[2 * rank :]) or not alone:
        return None
    return tuple(reversed(pad[: 2 * rank : 2])), tuple(reversed(pad[1 : 2 * rank : 2]))
