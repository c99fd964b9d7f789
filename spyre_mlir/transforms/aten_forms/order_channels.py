"""Pass `order-channels`: orders the channels of a convolution so that pixel shuffles move whole sticks.

```mlir
%y = aten.conv2d(%x, %w) {...} : (tensor<1x64x32x32xf16>, tensor<256x64x3x3xf16>) -> tensor<1x256x32x32xf16>
%z = aten.view(%y) {size = array<i64: 1, 64, 2, 2, 32, 32>} : (...) -> tensor<1x64x2x2x32x32xf16>
%p = aten.permute(%z) {dims = array<i64: 0, 1, 4, 2, 5, 3>} : (...) -> tensor<1x64x32x2x32x2xf16>
```
becomes a convolution by a weight whose 4 outputs of a place are the outermost, and views of its result:
```mlir
%0 = aten.conv2d(%x, %ordered) {...} : (tensor<1x64x32x32xf16>, tensor<256x64x3x3xf16>) -> tensor<1x256x32x32xf16>
%1 = aten.view(%0) {size = array<i64: 1, 2, 2, 64, 32, 32>} : (...) -> tensor<1x2x2x64x32x32xf16>
%z = aten.permute(%1) {dims = array<i64: 0, 3, 1, 2, 4, 5>} : (...) -> tensor<1x64x2x2x32x32xf16>
%p = aten.permute(%z) {dims = array<i64: 0, 1, 4, 2, 5, 3>} : (...) -> tensor<1x64x32x2x32x2xf16>
```
The channels that become neighbours of an image, by `pixel_shuffle`, lie side by side in a stick, of which a copy takes
single elements. The host orders the weight when it lays it out. In front of a convolution, the channels that
`pixel_unshuffle` makes of neighbours are ordered in the same way.

Decision: docs/decisions/0224-channels-of-pixel-shuffles-are-ordered.md
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from typing_extensions import override
from xdsl.dialects import func
from xdsl.ir import SSAValue

from spyre_mlir.dialects.argument_notes import is_prepared
from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.tensors import shape_of
from spyre_mlir.hw.formats import DL16
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.ops.table import Family
from spyre_mlir.transforms.aten_forms.recognition.convolved_images import CONVOLUTIONS
from spyre_mlir.transforms.utils.aten_ops import AtenWriter, arguments_of, erase_unread, is_open
from spyre_mlir.transforms.utils.function_pass import FunctionPass

_LANES = DL16.elements_per_stick()
_VIEW = "view"


@dataclass(frozen=True)
class OrderChannelsPass(FunctionPass):
    """Orders channels that become places of an image, or come from them, behind those that stay."""

    name = "order-channels"

    @override
    def rewrite(self, function: func.FuncOp, spec: SpyreSpec) -> None:
        """Rewrite convolutions whose channels move to places, and those that read channels from there."""
        for op in list(function.body.block.ops):
            if not isinstance(op, AtenOp) or not is_open(op) or op.overload not in (_VIEW, *CONVOLUTIONS):
                continue
            if op.overload == _VIEW:
                if _is_moved(op) and (found := _convolution_before(function, op)) is not None:
                    _order_outputs(op, *found)
            elif _is_convolution(function, op) and (before := _moved_before(op)) is not None:
                _order_inputs(op, before)


def _parts(image: tuple[int, ...], parted: tuple[int, ...]) -> tuple[int, ...] | None:
    """The extents into which the channels of an image are parted, the first of whole sticks; None if they are not."""
    behind = len(parted) - len(image) + 2
    fits = len(parted) > len(image) > 2 and parted[:1] == image[:1] and parted[behind:] == image[2:]
    parts = parted[1:behind]
    return parts if fits and parts[0] > 0 and parts[0] % _LANES == 0 and prod(parts[1:]) > 1 else None


def _moves_apart(op: object) -> bool:
    """Whether an op leaves the first dimension of channels where it is, and moves places between it and the others."""
    if not isinstance(op, AtenOp) or op.overload != "permute" or not is_open(op):
        return False
    dims = [d % len(shape_of(op.operands[0])) for d in arguments_of(op)["dims"]]
    return dims[:2] == [0, 1] and dims != sorted(dims)


def _is_moved(view: AtenOp) -> bool:
    """Whether a view parts the channels of an image for an op that moves some of them to places."""
    uses = [use.operation for use in view.results[0].uses]
    parts = _parts(shape_of(view.operands[0]), shape_of(view.results[0]))
    return parts is not None and len(uses) == 1 and _moves_apart(uses[0])


def _is_convolution(function: func.FuncOp, op: AtenOp) -> bool:
    """Whether every output of a convolution reads all channels, by a weight that the host lays out for it."""
    if op.overload not in CONVOLUTIONS or not is_open(op):
        return False
    args, batched = arguments_of(op), len(shape_of(op.operands[0])) == len(shape_of(op.operands[1]))
    own = all(is_prepared(function, v) and v.has_one_use() for v in op.operands[1:])
    return own and batched and args["groups"] == 1 and not args.get("transposed", False)


def _convolution_before(function: func.FuncOp, view: AtenOp) -> tuple[AtenOp, list[AtenOp]] | None:
    """The convolution that a view reads, and functions of one tensor between, in order; None if there is none."""
    between, value = list[AtenOp](), view.operands[0]
    while isinstance(value.owner, AtenOp) and value.has_one_use():
        op = value.owner
        if _is_convolution(function, op):
            return op, between
        pointwise = op.entry is not None and op.entry.family is Family.POINTWISE and len(op.operands) == 1
        if not pointwise or not is_open(op) or shape_of(op.operands[0]) != shape_of(value):
            return None
        between.insert(0, op)
        value = op.operands[0]
    return None


def _moved_before(convolution: AtenOp) -> SSAValue | None:
    """The tensor whose parts of channels, some of which were places, a convolution reads as channels; or None."""
    image = convolution.operands[0]
    value, parts = image, None
    while isinstance(value.owner, AtenOp) and value.has_one_use() and value.owner.overload in (_VIEW, "clone"):
        if value.owner.overload == _VIEW:
            if parts is not None:
                return None
            parts = _parts(shape_of(image), shape_of(value.owner.operands[0]))
            if parts is None:
                return None
        value = value.owner.operands[0]
    return value if parts is not None and _moves_apart(value.owner) else None


def _order_outputs(view: AtenOp, convolution: AtenOp, between: list[AtenOp]) -> None:
    """Replace a view of a convolution by one of a convolution whose outputs are ordered."""
    writer, parted = AtenWriter(view), shape_of(view.results[0])
    args, image = arguments_of(convolution), shape_of(view.operands[0])
    first, others = parted[1], parted[2 : len(parted) - len(image) + 2]
    for name in ("weight", "bias"):
        if (weight := args[name]) is not None:
            args[name] = _ordered(writer, weight, 0, prod(others))
    value = writer.call(convolution.overload, convolution, **args)
    for step in between:
        given = arguments_of(step)
        name = next(name for name, v in given.items() if isinstance(v, SSAValue))
        value = writer.call(step.overload, step, **{**given, name: value})
    value = writer.call(_VIEW, self=value, size=(image[0], *others, first, *image[2:]))
    last = len(others) + 1
    value = writer.call("permute", self=value, dims=(0, last, *range(1, last), *range(last + 1, len(parted))))
    view.results[0].replace_all_uses_with(value)
    erase_unread(view)


def _order_inputs(op: AtenOp, moved: SSAValue) -> None:
    """Let a convolution read the channels of a tensor, and its weight, in the other order."""
    writer, args, shape = AtenWriter(op), arguments_of(op), shape_of(op.operands[0])
    others = len(shape_of(moved)) - len(shape)
    dims = (0, *range(2, others + 2), 1, *range(others + 2, len(shape_of(moved))))
    value = writer.call("permute", self=moved, dims=dims)
    args["input"] = writer.call(_VIEW, self=value, size=shape)
    args["weight"] = _ordered(writer, args["weight"], 1, prod(shape_of(moved)[2 : others + 2]))
    op.results[0].replace_all_uses_with(writer.call(op.overload, op, **args))
    erase_unread(op)


def _ordered(writer: AtenWriter, weight: SSAValue, dim: int, inner: int) -> SSAValue:
    """A weight whose channels along a dimension are ordered by their number modulo `inner`; the host makes it."""
    shape = shape_of(weight)
    parted = (*shape[:dim], shape[dim] // inner, inner, *shape[dim + 1 :])
    order = [*range(dim), dim + 1, dim, *range(dim + 2, len(parted))]
    value = writer.moved(_VIEW, weight, size=parted)
    return writer.moved(_VIEW, writer.moved("permute", value, dims=order), size=shape)


__all__ = ["OrderChannelsPass"]
