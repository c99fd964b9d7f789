"""Host steps of the kernel level: their operands come from the host, or back from the device."""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.dialects.builtin import TensorType, UnitAttr, f32
from xdsl.ir import Block

from spyre_mlir.dialects.spyre.host import KernelHostOp, LoopHostOp
from spyre_mlir.dialects.spyre.kernel import AllocOp, FromDeviceOp
from spyre_mlir.hw.formats import DL16
from spyre_mlir.hw.sticks import StickLayout
from spyre_mlir.transforms.loop_to_kernel.buffers import PlannedBuffer, PlannedHostOp
from spyre_mlir.transforms.loop_to_kernel.host_ops import brought, host_op
from spyre_mlir.transforms.utils.rebuild import Emitter

KIND = TensorType(f32, [4, 64])


def test_buffers_are_brought_back_and_host_tensors_taken_as_they_are() -> None:
    one, two, three, new = Block(arg_types=[KIND] * 4).args
    buffer = PlannedBuffer((4, 64), DL16.name, StickLayout.published((4, 64), 1, 64))
    alloc, emitter = AllocOp(buffer.type), Emitter()
    made = brought(func.ReturnOp(one, two, three), [None, buffer, None], {buffer: alloc.result}, {three: new}, emitter)
    (op,) = emitter.ops
    assert isinstance(op, FromDeviceOp) and op.source is alloc.result and op.results[0].type == KIND
    assert made == [one, op.results[0], new]


def test_a_host_step_keeps_what_it_says() -> None:
    (operand, other) = Block(arg_types=[KIND] * 2).args
    for reason in ("no entry", None):
        step = LoopHostOp("aten.sort", reason, [operand], {"stable": UnitAttr()}, [KIND, KIND])
        op = host_op(PlannedHostOp(step, [None]), [other])
        assert isinstance(op, KernelHostOp) and op.callee.data == "aten.sort"
        assert (None if op.reason is None else op.reason.data) == reason
        assert list(op.operands) == [other] and [r.type for r in op.results] == [KIND, KIND]
        assert op.given is not None and "stable" in op.given.data
