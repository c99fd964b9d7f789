"""Pass `convolve-patches`: takes the product of patches that a model moves out of an image as a convolution.

```mlir
%v = aten.view(%x) {size = array<i64: 1, 3, 14, 16, 14, 16>} : (tensor<1x3x224x224xf16>) -> tensor<1x3x14x16x14x16xf16>
%p = aten.permute(%v) {dims = array<i64: 0, 2, 4, 3, 5, 1>} : (...) -> tensor<1x14x14x16x16x3xf16>
%r = aten.view(%p) {size = array<i64: 1, 196, 768>} : (...) -> tensor<1x196x768xf16>
%y = aten.linear(%r, %w, %b) : (...) -> tensor<1x196x768xf16>
```
becomes a convolution by the weight, whose columns the host orders as channels and taps, and views of its result:
```mlir
%c = aten.conv2d(%x, %ordered, %b) {stride = array<i64: 16, 16>} : (...) -> tensor<1x768x14x14xf16>
%t = aten.permute(%c) {dims = array<i64: 0, 2, 3, 1>} : (...) -> tensor<1x14x14x768xf16>
%y = aten.view(%t) {size = array<i64: 1, 196, 768>} : (...) -> tensor<1x196x768xf16>
```
Moved out by themselves, channels and taps of a patch come into the lanes one by one; a convolution takes whole rows.

Decision: docs/decisions/0228-products-of-patches-are-convolutions.md
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
from spyre_mlir.transforms.aten_forms.recognition.taken_patches import Patches, PatchPart, Role, patches_in
from spyre_mlir.transforms.utils.aten_ops import AtenWriter, arguments_of, erase_unread, is_open
from spyre_mlir.transforms.utils.function_pass import FunctionPass

_LANES = DL16.elements_per_stick()
_LINEAR, _VIEW, _PERMUTE = "linear", "view", "permute"
_MOST_AXES = 3  # of a convolution


@dataclass(frozen=True)
class ConvolvePatchesPass(FunctionPass):
    """Replaces products of patches by convolutions."""

    name = "convolve-patches"

    @override
    def rewrite(self, function: func.FuncOp, spec: SpyreSpec) -> None:
        """Rewrite every product of patches by a weight that the host lays out for it."""
        for op in list(function.body.block.ops):
            if not isinstance(op, AtenOp) or op.overload != _LINEAR or not is_open(op):
                continue
            weight = op.operands[1]
            if not is_prepared(function, weight) or not weight.has_one_use():
                continue
            found = [c for patches in patches_in(op.operands[0]) if (c := _convolution(patches)) is not None]
            if found:
                _rewrite(op, found[-1])


@dataclass(frozen=True)
class _Convolution:
    """Patches as a convolution takes them.

    Attributes:
        patches: the tensor.
        rows: parts of its rows: axes of a batch, and places.
        summed: parts of its columns, which are summed over: taps, and the axis of the channels if there is one.
        axes: of the image along which windows slide.
    """

    patches: Patches
    rows: tuple[PatchPart, ...]
    summed: tuple[PatchPart, ...]
    axes: tuple[int, ...]

    @property
    def channels(self) -> tuple[PatchPart, ...]:
        """The axis of the channels, if there is one."""
        return tuple(p for p in self.summed if p.role is Role.WHOLE)

    @property
    def batch(self) -> tuple[PatchPart, ...]:
        """The axes of a batch, in the order of the rows."""
        return tuple(p for p in self.rows if p.role is Role.WHOLE)


def _convolution(patches: Patches) -> _Convolution | None:
    """Return the convolution that patches are for; None if there is none, or if it is not quicker."""
    rows, summed = tuple(p for dim in patches.dims[:-1] for p in dim), tuple(patches.dims[-1])
    axes = tuple(sorted(patches.windows))
    found = _Convolution(patches, rows, summed, axes)
    places, taps = [
        sorted(p.axis for p in parts if p.role is role) for parts, role in ((rows, Role.PLACE), (summed, Role.TAP))
    ]
    if tuple(places) != axes or tuple(taps) != axes or len(axes) > _MOST_AXES or len(found.channels) > 1:
        return None
    return found if _is_quicker(found) else None


def _is_quicker(found: _Convolution) -> bool:
    """Whether a convolution takes less time than moving patches out.

    It does not where channels of whole sticks stay beside each other, where patches are a view, for the first axis
    alone, such as heads of several sequences, and for one axis without channels, such as the columns of heads, unless
    wide windows overlap.
    """
    parts, windows = (*found.rows, *found.summed), [found.patches.windows[axis] for axis in found.axes]
    last = found.summed[-1]
    if found.axes == (0,) or (last.role is Role.WHOLE and last.extent % _LANES == 0):
        return False
    if len(windows) == 1 and not found.channels:
        return windows[0].size > max(windows[0].stride, _LANES)
    as_it_lies = sorted(parts, key=lambda part: (part.axis, part.role is Role.TAP))
    return list(parts) != as_it_lies or any(w.stride != w.size for w in windows)


def _rewrite(op: AtenOp, found: _Convolution) -> None:
    """Replace a product of patches by a convolution."""
    writer, args, windows = AtenWriter(op), arguments_of(op), found.patches.windows
    sliding = [windows[axis] for axis in found.axes]
    value = writer.call(
        f"conv{len(found.axes)}d",
        op,
        input=_image(writer, found),
        weight=_weight(writer, args["weight"], found),
        bias=args["bias"],
        stride=tuple(w.stride for w in sliding),
        padding=tuple(w.padding for w in sliding),
        dilation=tuple(w.dilation for w in sliding),
    )
    _, outputs, *places = shape_of(value)
    batch = found.batch
    value = writer.call(_VIEW, self=value, size=(*(p.extent for p in batch), outputs, *places))
    at = {p: n for n, p in enumerate(batch)}
    order = [at[p] if p in at else len(batch) + 1 + found.axes.index(p.axis) for p in found.rows]
    value = writer.call(_PERMUTE, self=value, dims=(*order, len(batch)))
    value = writer.call(_VIEW, self=value, size=shape_of(op.results[0]))
    op.results[0].replace_all_uses_with(value)
    erase_unread(op)


def _image(writer: AtenWriter, found: _Convolution) -> SSAValue:
    """The image with its batch, its channels and the axes of the windows, in this order."""
    image = found.patches.image
    shape = shape_of(image)
    own = [*(p.axis for p in (*found.batch, *found.channels)), *found.axes]
    order = (*(d for d in range(len(shape)) if d not in own), *own)
    value = image if order == tuple(range(len(shape))) else writer.call(_PERMUTE, self=image, dims=order)
    size = (prod(p.extent for p in found.batch), prod(p.extent for p in found.channels))
    return writer.call(_VIEW, self=value, size=(*size, *(shape[axis] for axis in found.axes)))


def _weight(writer: AtenWriter, weight: SSAValue, found: _Convolution) -> SSAValue:
    """The weight with its channels and taps in the order of a convolution; the host makes it."""
    outputs = shape_of(weight)[0]
    value = writer.moved(_VIEW, weight, size=(outputs, *(p.extent for p in found.summed)))
    ranked = sorted(enumerate(found.summed, 1), key=lambda part: (part[1].role is Role.TAP, part[1].axis))
    value = writer.moved(_PERMUTE, value, dims=(0, *(n for n, _ in ranked)))
    kernel = (found.patches.windows[axis].size for axis in found.axes)
    return writer.moved(_VIEW, value, size=(outputs, prod(p.extent for p in found.channels), *kernel))


__all__ = ["ConvolvePatchesPass"]
