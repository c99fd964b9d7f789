"""Gathers: a copy whose rows are known at run time, so that cores see parts of the result alone."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.dialects.test import TestOp
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.dialects.spyre.attributes import DeviceTensor, DeviceTensorType, IndexMapAttr, IterDim, SpaceAttr
from spyre_mlir.dialects.spyre.kernel_gather import GatherOp
from spyre_mlir.hw.sticks import LinearExpr, StickError, StickLayout


def test_gather_is_a_copy_with_indices() -> None:
    index = DeviceTensorType(DeviceTensor((5,), "SENUINT32", StickLayout((0,), 0, (32,))))
    table = DeviceTensorType(DeviceTensor((10, 128), "SEN169_FP16", StickLayout((0, 1), 1, (10, 128))))
    result = DeviceTensorType(DeviceTensor((5, 128), "SEN169_FP16", StickLayout((1, 0), 1, (5, 128))))
    i, t, o = TestOp(result_types=[index, table, result]).results
    s, h = LinearExpr.of("s"), LinearExpr.of("h")
    op = GatherOp(
        SpaceAttr((IterDim("s", 5), IterDim("h", 128))),
        [i, t],
        o,
        [IndexMapAttr((s,)), IndexMapAttr((LinearExpr(), h)), IndexMapAttr((s, h))],
        {"axis": IntegerAttr(0, i64)},
    )
    op.verify()
    assert op.function_name == "identity"
    assert [op.has_slices(number) for number in range(3)] == [False, False, True]
    assert op.core_view(2).parts == (1, 1)
    with pytest.raises(StickError, match="its inputs stay in HBM"):
        op.core_view(1)


def test_a_gather_of_one_input_is_refused_before_anything_looks_at_the_other() -> None:
    rows = DeviceTensorType(DeviceTensor((3, 70), "SEN169_FP16", StickLayout((1, 0), 1, (3, 128))))
    source, out = TestOp(result_types=[rows, rows]).results
    space = SpaceAttr((IterDim("m", 3), IterDim("n", 70)))
    maps = [IndexMapAttr((LinearExpr.of("m"), LinearExpr.of("n")))] * 2
    op = GatherOp(space, [source], out, maps, {"axis": IntegerAttr(0, i64)})
    with pytest.raises(VerifyException, match="a gather has indices and a table, got 1 inputs"):
        op.verify()
