"""What kernel ops compute about themselves: accesses, whole sticks, families."""

from __future__ import annotations

from dataclasses import replace

import pytest
from xdsl.dialects.builtin import StringAttr, f32
from xdsl.dialects.test import TestOp
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.dialects.spyre.attributes import DeviceTensor, DeviceTensorType, IndexMapAttr, IterDim, SpaceAttr
from spyre_mlir.dialects.spyre.kernel import ComputeOp, device_tensor
from spyre_mlir.hw.sticks import LinearExpr, StickLayout
from spyre_mlir.ops import ATEN
from spyre_mlir.ops.table import Family

M, N = LinearExpr.of("m"), LinearExpr.of("n")


def tensor(form: str = "SEN169_FP16", extents: tuple[int, ...] = (3, 128)) -> DeviceTensorType:
    return DeviceTensorType(DeviceTensor((3, 70), form, StickLayout((1, 0), 1, extents)))


def compute(function: str, *types: DeviceTensorType) -> ComputeOp:
    *inputs, out = TestOp(result_types=list(types)).results
    space = SpaceAttr((IterDim("m", 3), IterDim("n", 70)))
    return ComputeOp(space, inputs, out, [IndexMapAttr((M, N))] * len(types), {"function": StringAttr(function)})


def test_lanes_are_padded_to_whole_sticks() -> None:
    op = compute("neg", tensor(), tensor())
    op.verify()
    assert op.padded_extents() == {"m": 3, "n": 128}
    assert [(a.offset, dict(a.strides), a.lane) for a in op.accesses()] == [(0, {"m": 1, "n": 3}, "n")] * 2


def test_the_widest_stick_decides() -> None:
    op = compute("identity", tensor("IEEE_FP32"), tensor())
    assert op.lane_dims() == {"n": 64}
    assert op.padded_extents()["n"] == 128


def test_family_comes_from_the_table() -> None:
    assert compute("neg", tensor(), tensor()).entry.family is Family.POINTWISE
    with pytest.raises(VerifyException, match="no op-table entry has the hardware function 'nag'"):
        _ = compute("nag", tensor(), tensor()).entry


def test_more_operands_than_the_hardware_takes() -> None:
    with pytest.raises(VerifyException, match="9 operands, the hardware takes 8"):
        compute("add", *[tensor()] * 9).verify()


def test_equal_kernels_share_their_facts() -> None:
    one, other = compute("neg", tensor(), tensor()), compute("neg", tensor(), tensor())
    assert one.accesses() is other.accesses()
    assert one.padded_extents() is other.padded_extents()
    with pytest.raises(TypeError):
        one.padded_extents()["n"] = 1  # type: ignore[index]


def test_facts_follow_every_change() -> None:
    op = compute("neg", tensor(), tensor())
    before = op.padded_extents(), op.core_slices(), op.operand_bytes(0), op.core_view(0)
    op.properties["space"] = SpaceAttr((IterDim("m", 3, 3), IterDim("n", 70)))
    assert op.padded_extents() == before[0]
    assert len(op.core_slices()) == 3
    assert op.core_view(0) != before[3]
    op.operands[0] = TestOp(result_types=[tensor("IEEE_FP32")]).results[0]
    assert op.operand_bytes(0) == 2 * before[2]


def test_walks_and_slices_are_those_of_a_buffer_in_either_memory() -> None:
    op, beside = compute("neg", tensor(), tensor()), compute("neg", tensor(), tensor())
    for one in (op, beside):
        one.properties["space"] = SpaceAttr((IterDim("m", 3, 3), IterDim("n", 70)))
    moved = DeviceTensorType(replace(device_tensor(beside.output), space="lx"))
    beside.operands[1] = TestOp(result_types=[moved]).results[0]
    assert beside.accesses() is op.accesses() and beside.core_view(1) is op.core_view(1)
    assert beside.local_walk(1)[0].strides == {"m": 1, "n": 1}
    beside.verify()
    assert (op.hbm_bytes(), beside.hbm_bytes()) == (2 * 3 * 2 * 128, 3 * 2 * 128)


def test_facts_of_a_function_that_a_plugin_makes_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """A product divides the summed loop: the order of cores is another one."""
    op = compute("neg", tensor(), tensor())
    op.properties["space"] = SpaceAttr((IterDim("m", 3, 3), IterDim("n", 128, 2)))
    before = op.core_slices()
    product = ATEN.by_opfunc("batchmatmul")
    monkeypatch.setattr(type(ATEN), "by_opfunc", lambda *_: product)
    assert op.is_product and op.core_slices() != before


def test_other_values_are_no_device_tensors() -> None:
    with pytest.raises(VerifyException, match="expected a device tensor, got f32"):
        device_tensor(TestOp(result_types=[f32]).results[0])
