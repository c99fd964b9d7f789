"""Counts of what a stage of the pipeline has made: ops, kernels, bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.dialects.ir.modules import OpsByClass, ops_in
from spyre_mlir.dialects.sdscbundle import DeviceMemAllocateOp
from spyre_mlir.dialects.spyre.attributes import DeviceTensorType
from spyre_mlir.dialects.spyre.kernel import AllocOp, ConvertOp, KernelOp, device_tensor
from spyre_mlir.dialects.spyre.kernel_loop import TileOp
from spyre_mlir.dialects.spyre.kernel_view import ViewOp
from spyre_mlir.dialects.spyre.static_loop import trips_of
from spyre_mlir.dialects.superdsc import SdscOp
from spyre_mlir.hw.spec import STICK_BYTES
from spyre_mlir.transforms.loop_to_kernel.precision_loss import narrowed
from spyre_mlir.transforms.utils.host_fallback import host_steps_of


@dataclass(frozen=True)
class StageRecord:
    """Record of a finished stage.

    Attributes:
        level: the level reached.
        ops: operations of the module, bodies included.
        kernels: hardware functions to run; those of a region count once, however often it is called.
        device_bytes: bytes of device memory (HBM), padding included; at the superdsc level buffers that live at
            different times share the pool.
        lx_bytes: bytes of each core's scratchpad in use, at the kernel level.
        traffic_bytes: bytes of device memory that kernels read and write in all trips and calls, at the kernel level.
        integers: kernels whose results are integers of unknown size, at the kernel level; the machine watches them.
        conversions: kernels that change the format of a tensor, at the kernel level.
        narrowed: kernels that compute in DL16 although float32 was to be kept, at the kernel level.
        seconds: time the passes and the checks took.
        host_steps: operators that the host runs because the device cannot.
    """

    level: str
    ops: int
    kernels: int
    device_bytes: int
    seconds: float
    lx_bytes: int = 0
    traffic_bytes: int = 0
    host_steps: int = 0
    integers: int = 0
    conversions: int = 0
    narrowed: int = 0

    def summary(self) -> str:
        """Return the record as one line for a log."""
        memory = f", {self.device_bytes:,} device bytes" if self.device_bytes else ""
        host = f", {self.host_steps} host steps" if self.host_steps else ""
        return f"level {self.level}: {self.ops} ops, {self.kernels} kernels{host}{memory}, {self.seconds:.3f} s"


def _calls(op: KernelOp, calls: Mapping[str, int]) -> int:
    """How often the function of a kernel is called; once if it is the program."""
    function = op.parent_op()
    while function is not None and not isinstance(function, func.FuncOp):
        function = function.parent_op()
    return 1 if function is None else calls.get(function.sym_name.data, 1)


def record_of(level: str, module: ModuleOp, seconds: float) -> StageRecord:
    """Return the record of a stage: counts of its ops, kernels and bytes.

    Args:
        level: the level reached.
        module: at that level.
        seconds: time that the stage took.
    """
    ops = ops_in(module)
    by_class = OpsByClass(ops)
    kernels = by_class.of(KernelOp)
    results = [r for op in ops for r in op.results if type(r.type) is DeviceTensorType]
    tensors = [device_tensor(r) for r in results if not isinstance(r.owner, TileOp | ViewOp)]
    pool = sum(op.size.value.data for op in by_class.of(DeviceMemAllocateOp))
    arguments = sum(t.sticks for t in tensors if t.space == "hbm") * STICK_BYTES
    placed = [op for op in by_class.of(AllocOp) if op.offset is not None]
    local = [op for op in placed if device_tensor(op.result).space == "lx"]
    calls = Counter(op.callee.root_reference.data for op in by_class.of(func.CallOp))
    traffic = sum(op.hbm_bytes() * trips_of(op) * _calls(op, calls) for op in kernels)
    return StageRecord(
        level=level,
        ops=len(ops),
        kernels=len(kernels) + len(by_class.of(SdscOp)),
        device_bytes=arguments + pool,
        seconds=seconds,
        lx_bytes=max((op.end for op in local), default=0),
        traffic_bytes=traffic,
        host_steps=len(host_steps_of(module)),
        integers=sum(op.is_watched for op in kernels),
        conversions=sum(isinstance(op, ConvertOp) for op in kernels),
        narrowed=narrowed(module).total(),
    )


__all__ = ["StageRecord", "record_of"]
