"""Pass `group-channels`: normalises groups of channels by means of channels, where convolutions have made the images.

```mlir
%0 = aten.conv2d(%x, %w) {padding = array<i64: 1, 1>} : (...) -> tensor<2x320x32x32xf16>
%1 = aten.group_norm(%0, %g, %b) {num_groups = 32} : (...) -> tensor<2x320x32x32xf16>
```
becomes a normalisation that takes the means of channels first:
```mlir
%1 = aten.call "spyre::group_norm_by_channels"(%0, %g, %b) {num_groups = 32} : (...) -> tensor<2x320x32x32xf16>
```
A convolution leaves channels in the lanes. Viewed as groups of channels its images would be laid out again. Their means
by channel are short, but several images have them laid out again, so this is done where that of the images is saved.

Decision: docs/decisions/0203-means-of-groups-are-means-of-channels.md
"""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override
from xdsl.dialects import func

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.tensors import shape_of
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.ops.composed.nn.group_normalization import GROUP_NORM_BY_CHANNELS
from spyre_mlir.ops.helpers.group_means import fill_lanes
from spyre_mlir.transforms.aten_forms.recognition.convolved_images import is_convolved
from spyre_mlir.transforms.utils.aten_ops import arguments_of, is_open, replace
from spyre_mlir.transforms.utils.function_pass import FunctionPass


@dataclass(frozen=True)
class GroupChannelsPass(FunctionPass):
    """Normalises groups of several images by means of channels behind convolutions."""

    name = "group-channels"

    @override
    def rewrite(self, function: func.FuncOp, spec: SpyreSpec) -> None:
        """Rewrite every normalisation of images that follow from a convolution element by element."""
        for op in [o for o in function.body.block.ops if isinstance(o, AtenOp) and o.overload == "group_norm"]:
            image, args = op.operands[0], arguments_of(op)
            if not is_open(op) or len(shape_of(image)) < 3 or not fill_lanes(shape_of(image)[1], args["num_groups"]):
                continue
            if is_convolved(image):
                replace(op, GROUP_NORM_BY_CHANNELS, {n: v for n, v in args.items() if n != "cudnn_enabled"})


__all__ = ["GroupChannelsPass"]
