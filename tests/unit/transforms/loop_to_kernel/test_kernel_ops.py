"""Planned steps as ops: each kind of kernel, everything that a step says, and host steps with their operands."""

from __future__ import annotations

import pytest
from xdsl.dialects import func
from xdsl.dialects.builtin import DictionaryAttr, FloatAttr, TensorType, UnitAttr, f32, f64
from xdsl.ir import Block

from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.attributes import IndexMapAttr, IterDim
from spyre_mlir.dialects.spyre.host import KernelHostOp, LoopHostOp
from spyre_mlir.dialects.spyre.kernel import AllocOp, FromDeviceOp
from spyre_mlir.dialects.spyre.kernel_gather import GatherOp
from spyre_mlir.hw.formats import DL16, INDEX
from spyre_mlir.hw.sticks import LinearExpr, StickLayout
from spyre_mlir.transforms.loop_to_kernel.buffers import PlannedBuffer, PlannedHostOp, PlannedKernel
from spyre_mlir.transforms.loop_to_kernel.kernel_ops import brought, host_op, kernel_op
from spyre_mlir.transforms.utils.rebuild import Emitter

SPACE = (IterDim("m", 4, 2), IterDim("n", 64))
INDEX_MAP = (LinearExpr.of("m"), LinearExpr.of("n"))
TURNED = INDEX_MAP[::-1]


def step(
    function: str, inputs: int = 1, axis: int | None = None, **more: object
) -> tuple[PlannedKernel, kernel.KernelOp]:
    buffers = [PlannedBuffer((4, 64), DL16.name, StickLayout.published((4, 64), 1, 64)) for _ in range(inputs + 1)]
    uses = [(b, INDEX_MAP) for b in buffers[:-1]]
    made = PlannedKernel(function, SPACE, uses, (buffers[-1], TURNED), None, axis, **more)  # type: ignore[arg-type]
    values = {b: kernel.AllocOp(b.type).result for b in buffers}
    op = kernel_op(made, values)
    assert list(op.operands) == [values[b] for b in buffers]
    assert list(op.maps.data) == [*[IndexMapAttr(INDEX_MAP)] * inputs, IndexMapAttr(TURNED)]
    # A plan divides nothing.
    assert op.space.data == (IterDim("m", 4), IterDim("n", 64))
    return made, op


@pytest.mark.parametrize(
    ("function", "kind"),
    [("restickify", kernel.RestickifyOp), ("convert", kernel.ConvertOp), ("exp", kernel.ComputeOp)],
)
def test_kinds_of_kernels(function: str, kind: type[kernel.KernelOp]) -> None:
    _, op = step(function)
    assert type(op) is kind and op.attributes == {}


def test_a_computation_has_its_function() -> None:
    _, op = step("add", inputs=2)
    assert isinstance(op, kernel.ComputeOp) and op.function_name == "add"


def test_a_gather_has_its_axis() -> None:
    for axis, wanted in ((1, 1), (None, 0)):
        _, op = step("gather", 2, axis)
        assert isinstance(op, GatherOp) and op.axis.value.data == wanted
    assert INDEX.name == "SENUINT32"


SHARED = {"space", "maps"}


def test_what_a_step_says_of_numbers() -> None:
    _, op = step("exp", integers=True)
    assert set(op.properties) - SHARED == {"function", "integers"}
    _, op = step("exp", element=f32)
    assert set(op.properties) - SHARED == {"function", "element"} and op.rounds_to == f32
    _, op = step("softplus", constants={"softplusBeta": 2.0})
    assert op.properties["op_info"] == DictionaryAttr({"softplusBeta": FloatAttr(2.0, f64)})


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
