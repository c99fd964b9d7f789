"""The `spyre` namespace: two families of ops, `spyre.loop.*` and `spyre.kernel.*`, in one dialect."""

from xdsl.ir import Dialect

from spyre_mlir.dialects.spyre import host, kernel, kernel_gather, kernel_loop, kernel_view, loop, loop_blocks, scalars
from spyre_mlir.dialects.spyre.attributes import (
    DeviceTensorType,
    DivisionAttr,
    IndexMapAttr,
    SpaceAttr,
)
from spyre_mlir.dialects.spyre.layout_choices import LayoutAttr
from spyre_mlir.dialects.spyre.moves import MoveAttr, RowPartsAttr, WordsAttr
from spyre_mlir.dialects.spyre.named_values import FirstOnesAttr, IotaAttr, ResampleAttr
from spyre_mlir.dialects.target import TargetAttr

Spyre = Dialect(
    "spyre",
    [
        loop.NestOp,
        loop.LoopGatherOp,
        loop.EmptyOp,
        loop.LoopConstantOp,
        loop_blocks.BlockOp,
        loop_blocks.PutOp,
        scalars.ApplyOp,
        loop.YieldOp,
        kernel.ComputeOp,
        kernel.RestickifyOp,
        kernel.ConvertOp,
        kernel_gather.GatherOp,
        kernel.AllocOp,
        kernel.FreeOp,
        kernel.KernelConstantOp,
        kernel.ToDeviceOp,
        kernel.FromDeviceOp,
        kernel.LaunchOp,
        kernel_loop.BlockNumberOp,
        kernel_loop.TileOp,
        kernel_view.ViewOp,
        host.LoopHostOp,
        host.KernelHostOp,
    ],
    [
        SpaceAttr,
        DivisionAttr,
        IndexMapAttr,
        DeviceTensorType,
        IotaAttr,
        FirstOnesAttr,
        ResampleAttr,
        MoveAttr,
        WordsAttr,
        RowPartsAttr,
        LayoutAttr,
        TargetAttr,
    ],
)
