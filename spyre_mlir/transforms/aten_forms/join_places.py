"""Pass `join-places`: makes convolutions of 1 x 1 around attention over an image products with places in the lanes.

```mlir
%y = aten.conv2d(%x, %w, %b) {...} : (tensor<1x256x32x32xf16>, tensor<768x256x1x1xf16>, ...) -> tensor<1x768x32x32xf16>
%heads = aten.view(%y) {size = array<i64: 1, 24, 32, 1024>} : (...) -> tensor<1x24x32x1024xf16>
```
becomes
```mlir
%flat = aten.view(%x) {size = array<i64: 1, 256, 1024>} : (tensor<1x256x32x32xf16>) -> tensor<1x256x1024xf16>
%matrix = aten.view(%w) {size = array<i64: 768, 256>} : (tensor<768x256x1x1xf16>) -> tensor<768x256xf16>
%0 = aten.matmul(%matrix, %flat) : (tensor<768x256xf16>, tensor<1x256x1024xf16>) -> tensor<1x768x1024xf16>
%y = aten.add.Tensor(%0, %column) : (tensor<1x768x1024xf16>, tensor<768x1xf16>) -> tensor<1x768x1024xf16>
%heads = aten.view(%y) {size = array<i64: 1, 24, 32, 1024>} : (...) -> tensor<1x24x32x1024xf16>
```
A convolution has channels in its lanes. Heads whose channels are no whole sticks cannot be read there, and neither can
places, which a row of the image parts; so each reader would lay out the image again, in short sticks. The columns of a
product are places, and a head is some of its rows. The convolution behind attention, which reads heads side by side,
becomes such a product, too.

Decision: docs/decisions/0222-places-of-an-image-are-columns.md
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from typing_extensions import override
from xdsl.dialects import func
from xdsl.ir import SSAValue

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.tensors import shape_of
from spyre_mlir.hw.formats import DL16
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.ops.helpers.sliding_windows import spread
from spyre_mlir.ops.table import Family
from spyre_mlir.transforms.aten_forms.recognition.convolved_images import CONVOLUTIONS
from spyre_mlir.transforms.aten_forms.recognition.joined_parts import BATCH_NORM
from spyre_mlir.transforms.utils.aten_ops import AtenWriter, arguments_of, erase_unread, is_open
from spyre_mlir.transforms.utils.function_pass import FunctionPass

_LANES = DL16.elements_per_stick()
_SLICE, _VIEW = "slice.Tensor", "view"
_MOVES = (_VIEW, _SLICE, "clone", "permute", "select.int", "squeeze.dims", "unsqueeze")


@dataclass(frozen=True)
class JoinPlacesPass(FunctionPass):
    """Gives convolutions of 1 x 1 around attention over an image their places as one dimension."""

    name = "join-places"

    @override
    def rewrite(self, function: func.FuncOp, spec: SpyreSpec) -> None:
        """Rewrite every convolution that heads of no whole sticks are taken from, or that reads them."""
        for op in list(function.body.block.ops):
            if not isinstance(op, AtenOp) or not _mixes_channels(op):
                continue
            image = op.results[0]
            if _reads_joined(op.operands[0]) or (image.uses and all(_joined(u.operation) for u in image.uses)):
                _rewrite(op)


def _mixes_channels(op: AtenOp) -> bool:
    """Whether a convolution multiplies each place of images by itself."""
    if op.overload not in CONVOLUTIONS or not is_open(op):
        return False
    args, image, weight = arguments_of(op), shape_of(op.operands[0]), shape_of(op.operands[1])
    rank = len(weight) - 2
    if len(image) != rank + 2 or rank < 2 or 0 in image or set(weight[2:]) != {1}:
        return False
    padding = args["padding"]
    padded = padding not in ("valid", "same") if isinstance(padding, str) else any(padding)
    plain = args["groups"] == 1 and not args.get("transposed", False) and not padded
    return plain and set(spread(args["stride"], rank)) == {1}


def _joined(op: object) -> bool:
    """Whether an op that reads an image, or all that follows from it, joins the places and parts the channels."""
    if not isinstance(op, AtenOp) or not is_open(op):
        return False
    if op.overload == _VIEW:
        return _becomes_heads(op, prod(shape_of(op.operands[0])[2:]))
    uses = list(op.results[0].uses)
    return _keeps_places(op) and bool(uses) and all(_joined(use.operation) for use in uses)


def _keeps_places(op: AtenOp) -> bool:
    """Whether an op takes some channels of an image, or computes each element by itself, and of any dimensions."""
    shape = shape_of(op.operands[0])
    if op.overload == BATCH_NORM:
        return not any(result.uses for result in op.results[1:])
    if op.overload == _SLICE:
        return arguments_of(op)["dim"] % len(shape) == 1
    pointwise = op.entry is not None and op.entry.family is Family.POINTWISE and len(op.operands) == 1
    return op.overload == "clone" or (pointwise and shape_of(op.results[0]) == shape)


def _becomes_heads(op: object, places: int) -> bool:
    """Whether an op, or all that moves its result on, makes heads of no whole sticks and so many places."""
    if not isinstance(op, AtenOp) or not is_open(op) or op.overload not in _MOVES:
        return False
    made, uses = shape_of(op.results[0]), [use.operation for use in op.results[0].uses]
    if len(made) > 3 and made[-1] == places:
        return made[-2] % _LANES != 0 or any(_cuts(reader, len(made)) for reader in uses)
    return bool(uses) and all(_becomes_heads(reader, places) for reader in uses)


def _cuts(op: object, rank: int) -> bool:
    """Whether an op takes channels of heads of another number than whole sticks."""
    if not isinstance(op, AtenOp) or op.overload != _SLICE:
        return False
    return arguments_of(op)["dim"] % rank == rank - 2 and shape_of(op.results[0])[-2] % _LANES != 0


def _reads_joined(image: SSAValue) -> bool:
    """Whether an image is a view of joined places, and its channels are those of heads of no whole sticks."""
    op, places = image.owner, prod(shape_of(image)[2:])
    while isinstance(op, AtenOp) and op.overload in (_VIEW, "clone") and is_open(op):
        heads = shape_of(op.operands[0])
        if len(heads) > 3 and heads[-1] == places:
            return heads[-2] % _LANES != 0
        op = op.operands[0].owner
    return False


def _rewrite(op: AtenOp) -> None:
    """Replace a convolution by a product of its weight and the image with joined places."""
    writer, args = AtenWriter(op), arguments_of(op)
    batch, channels, *places = shape_of(op.operands[0])
    made = shape_of(op.results[0])
    matrix = writer.moved(_VIEW, args["weight"], size=(made[1], channels))
    flat = writer.call(_VIEW, op, self=op.operands[0], size=(batch, channels, prod(places)))
    value = writer.call("matmul", op, self=matrix, other=flat)
    if args["bias"] is not None:
        column = writer.moved(_VIEW, args["bias"], size=(made[1], 1))
        value = writer.call("add.Tensor", op, self=value, other=column)
    if all(_joined(use.operation) for use in op.results[0].uses):
        _read_flat(op.results[0], value)
    if op.results[0].uses:
        op.results[0].replace_all_uses_with(writer.call(_VIEW, op, self=value, size=made))
    erase_unread(op)


def _read_flat(image: SSAValue, flat: SSAValue) -> None:
    """Let the readers of an image read it with joined places."""
    for use in list(image.uses):
        op = use.operation
        if not isinstance(op, AtenOp):
            continue
        if op.overload == _VIEW:
            op.operands[use.index] = flat
            continue
        args = arguments_of(op)
        name = next(name for name, given in args.items() if given is image)
        dim = {"dim": 1} if op.overload == _SLICE else {}
        after = AtenWriter(op).call(op.overload, op, **{**args, **dim, name: flat})
        _read_flat(op.results[0], after)
        erase_unread(op)


__all__ = ["JoinPlacesPass"]
