"""Planned steps as ops: each kind of kernel, and everything that a step says."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import DictionaryAttr, FloatAttr, f32, f64

from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.attributes import IndexMapAttr, IterDim
from spyre_mlir.hw.formats import DL16, INDEX
from spyre_mlir.hw.sticks import LinearExpr, StickLayout
from spyre_mlir.transforms.loop_to_kernel.buffers import PlannedBuffer, PlannedKernel
from spyre_mlir.transforms.loop_to_kernel.kernel_ops import kernel_op

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
        assert isinstance(op, kernel.GatherOp) and op.axis.value.data == wanted
    assert INDEX.name == "SENUINT32"


SHARED = {"space", "maps"}


def test_what_a_step_says_of_numbers() -> None:
    _, op = step("exp", integers=True)
    assert set(op.properties) - SHARED == {"function", "integers"}
    _, op = step("exp", element=f32)
    assert set(op.properties) - SHARED == {"function", "element"} and op.rounds_to == f32
    _, op = step("softplus", constants={"softplusBeta": 2.0})
    assert op.properties["op_info"] == DictionaryAttr({"softplusBeta": FloatAttr(2.0, f64)})
