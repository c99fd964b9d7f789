"""What kernels become in JSON, worked out by hand from the published rules: the derivation stands beside each number.

No file of the references has these shapes, so nothing here can come from one.
"""

from __future__ import annotations

from typing import Any

from spyre_mlir.dialects.superdsc.codec.build import build
from spyre_mlir.dialects.superdsc.codec.mirror import sdsc_to_json
from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor, Dim, OpClass, Operand, Version
from spyre_mlir.dialects.superdsc.model.function_constants import named_constant
from tests.unit.transforms.test_convert_spyre_kernel_to_superdsc import (
    COLUMNS_IN_LANES,
    ROWS_IN_LANES,
    SPARSE_VECTOR,
    VECTOR,
    Tensor,
    emitted,
)
from tests.unit.transforms.test_convert_spyre_kernel_to_superdsc import Case as Kernel

DL16, FP32 = "SEN169_FP16", "IEEE_FP32"
SEGMENT = 2**34


def parts(op: str, *tensors: Tensor) -> tuple[Any, Any]:
    """The top-level object and the DSC that one kernel becomes."""
    ((_, top),) = emitted(Kernel("", op, tensors)).items()
    ((_, dsc),) = top["dscs_"][0].items()
    return top, dsc


def starts(dsc: Any, operand: int) -> list[int]:
    return [int(text) for text in dsc["scheduleTree_"][operand]["startAddressCoreCorelet_"]["data_"].values()]


def folds(dsc: Any, operand: int, dim: str) -> tuple[list[int], list[int]]:
    """Alphas and factors of one dim's coordinates."""
    entry = dsc["scheduleTree_"][operand]["coordinates_"]["coordInfo"][dim]["folds"]
    return [f["Affine"]["alpha_"] for f in entry["dim_prop_func"]], [p["factor_"] for p in entry["dim_prop_attr"]]


def scales(dsc: Any) -> list[list[int]]:
    return [operand["scale_"] for operand in dsc["labeledDs_"]]


def orders(dsc: Any) -> list[list[str]]:
    return [node["layoutDimOrder_"] for node in dsc["scheduleTree_"]]


def matrix(m: int, n: int, index: str, segment: int, form: str = DL16) -> Tensor:
    return Tensor((m, n), COLUMNS_IN_LANES, index, segment, form)


def test_sum_over_the_stick() -> None:
    """Rows of (96, 128) summed on 32 cores: two loops, so mb and out; the result loop first, so rows are mb."""
    top, dsc = parts(
        'spyre.kernel.compute "sum" [m = 96 over 32, r = 128]',
        matrix(96, 128, "m, r", 0),
        Tensor((96,), SPARSE_VECTOR, "m", 1),
    )
    assert list(top["numWkSlicesPerDim_"].items()) == [("mb", 32), ("out", 1)]
    assert dsc["N_"] == {"name_": "n", "mb_": 96, "out_": 128}
    # On the device 128 columns are two columns of 96 sticks: inside rows, outside stick numbers. The result is sparse:
    # its own dim, then the one it lacks, which is in the stick and so -2. Set of dims, stick and lanes are equal: one
    # class.
    assert orders(dsc) == [["mb", "out"], ["mb", "out"]]
    assert dsc["primaryDsInfo_"] == {
        "OUTPUT": {"layoutDimOrder_": ["mb", "out"], "stickDimOrder_": ["out"], "stickSize_": [64]}
    }
    assert scales(dsc) == [[1, 1], [1, -2]]
    # Three rows per core: three sticks of 128 bytes in both operands.
    assert starts(dsc, 0) == [3 * 128 * core for core in range(32)]
    assert starts(dsc, 1) == [SEGMENT + 3 * 128 * core for core in range(32)]
    # The input's stick dim: slice of 128, sticks of 64 lanes. The sparse one: one stick whose lanes all stand for 0.
    assert folds(dsc, 0, "out") == ([128, 0, 0, 64, 1], [1, 1, 1, 2, 64])
    assert folds(dsc, 1, "out") == ([64, 0, 0, 64, 0], [1, 1, 1, 1, 64])
    assert folds(dsc, 1, "mb") == ([3, 0, 0, 1], [32, 1, 1, 3])
    # Nothing is padded. The result has a -2, so no suffix; it is read as the accumulator.
    assert (dsc["coordinateMasking_"], dsc["maskingConstId_"], dsc["constantInfo_"]) == ({}, -1, "{}")
    (compute,) = dsc["computeOp_"]
    assert (compute["opFuncName"], compute["exUnit"]) == ("sum", "sfp")
    assert compute["inputLabeledDs"] == ["Tensor0-idx0", "Tensor1-idx1"]
    assert compute["outputLabeledDs"] == ["Tensor1-idx1"]


def test_sum_over_rows() -> None:
    """Columns of (96, 128) summed, columns on two cores: the result's loop comes first, so columns are mb."""
    top, dsc = parts(
        'spyre.kernel.compute "sum" [r = 96, n = 128 over 2]',
        matrix(96, 128, "r, n", 0),
        Tensor((128,), VECTOR, "n", 1),
    )
    assert list(top["numWkSlicesPerDim_"].items()) == [("mb", 2), ("out", 1)]
    assert dsc["N_"] == {"name_": "n", "mb_": 128, "out_": 96}
    # Inner to outer: rows, then stick numbers of columns. The result has the columns, then what it lacks. Scales
    # follow the class's order, which the first operand sets.
    assert orders(dsc) == [["out", "mb"], ["mb", "out"]]
    assert dsc["primaryDsInfo_"]["OUTPUT"] == {
        "layoutDimOrder_": ["out", "mb"],
        "stickDimOrder_": ["mb"],
        "stickSize_": [64],
    }
    assert scales(dsc) == [[1, 1], [-1, 1]]
    # A core's slice of columns is one stick; in the input that is a column of 96 sticks, in the result one stick.
    assert starts(dsc, 0) == [0, 96 * 128]
    assert starts(dsc, 1) == [SEGMENT, SEGMENT + 128]
    assert folds(dsc, 1, "out") == ([1, 0, 0, 1], [1, 1, 1, 1])
    assert folds(dsc, 1, "mb") == ([64, 0, 0, 64, 1], [2, 1, 1, 1, 64])
    # The reduced dim is not in the stick.
    assert dsc["computeOp_"][0]["opFuncName"] == "sumnonstick"


def test_padded_maximum() -> None:
    """70 columns fill two sticks: 128, of which 58 are padding that must not win."""
    _, dsc = parts(
        'spyre.kernel.compute "max" [m = 64 over 4, r = 70]',
        matrix(64, 70, "m, r", 0),
        Tensor((64,), SPARSE_VECTOR, "m", 1),
    )
    assert dsc["N_"] == {"name_": "n", "mb_": 64, "out_": 128}
    assert dsc["coordinateMasking_"] == {"out": [[70, 58]]}
    assert dsc["maskingConstId_"] == 0
    # No number is less than the one with all bits set but the last: all of them are the symbol for what is no number.
    (constant,) = dsc["constantInfo_"].values()
    assert list(dsc["constantInfo_"]) == ["0"]
    assert (constant["name_"], constant["dataFormat_"]) == ("samv-maskvalue", DL16)
    assert constant["data_"]["data_"] == {"[0, 0, 0]": [0b1111111111111110]}
    # The same on every core and corelet; the number of cores stands in the first fold.
    assert constant["data_"]["dim_prop_func"] == [{"Const": {}}, {"Const": {}}, {"Map": {}}]
    assert [prop["factor_"] for prop in constant["data_"]["dim_prop_attr"]] == [4, 1, 1]


def test_clamp_constants() -> None:
    """Bounds -3 and 0.75 in DL16 and in FP32, in the order clipMin, clipMax."""

    def clip(form: str, version: Version) -> Any:
        operands = tuple(Operand(("out",), (64,), "out", form, (start,)) for start in ("0", "1024"))
        bounds = (named_constant("clipMin", -3.0, form), named_constant("clipMax", 0.75, form))
        built = build(Descriptor(0, "clip", "sfp", OpClass.POINTWISE, (Dim("out", 64),), operands, bounds), version)
        ((_, top),) = sdsc_to_json(built).items()
        entries: Any = top
        return entries["dscs_"][0]["clip"]["constantInfo_"]

    # -3 = -1.5 * 2^1: sign 1, exponent 31 + 1 = 32 = 0b100000, fraction .1: 1 100000 100000000.
    # 0.75 = 1.5 * 2^-1: sign 0, exponent 30 = 0b011110, fraction .1: 0 011110 100000000.
    found = clip(DL16, Version.TS26)
    assert [(key, entry["name_"]) for key, entry in found.items()] == [("0", "clipMin"), ("1", "clipMax")]
    assert [entry["data_"]["data_"]["[0, 0, 0]"] for entry in found.values()] == [
        [0b1100000100000000],
        [0b0011110100000000],
    ]
    # binary32: -3 has exponent 127 + 1 = 128 and fraction .1, 0.75 has exponent 126.
    found = clip(FP32, Version.TS26)
    assert [entry["data_"]["data_"]["[0, 0, 0]"] for entry in found.values()] == [[0xC0400000], [0x3F400000]]
    # The newest generation writes decimal strings.
    found = clip(DL16, Version.TSNEW)
    assert [entry["data_"]["data_"]["[0, 0, 0]"] for entry in found.values()] == [["49408"], ["15616"]]


def test_float32_add() -> None:
    """(64, 96) in float32 on 8 cores: 32 lanes of 4 bytes, three sticks a row."""
    _, dsc = parts(
        'spyre.kernel.compute "add" [m = 64 over 8, n = 96]', *(matrix(64, 96, "m, n", s, FP32) for s in range(3))
    )
    assert dsc["primaryDsInfo_"]["OUTPUT"]["stickSize_"] == [32]
    assert [(o["wordLength"], o["dataFormat_"]) for o in dsc["labeledDs_"]] == [(4, FP32)] * 3
    # Eight rows a core, each one stick of 128 bytes within a column of sticks.
    assert [starts(dsc, n) for n in range(3)] == [[n * SEGMENT + 8 * 128 * core for core in range(8)] for n in range(3)]
    assert folds(dsc, 2, "out") == ([96, 0, 0, 32, 1], [1, 1, 1, 3, 32])
    assert dsc["computeOp_"][0]["attributes_"] == {"dataFormat_": FP32, "fidelity_": "regular"}


def test_bias() -> None:
    """(64, 192) + (192): the bias has the stick dim only, so rows are appended and its scale for them is -1."""
    _, dsc = parts(
        'spyre.kernel.compute "add" [m = 64 over 4, n = 192]',
        matrix(64, 192, "m, n", 0),
        Tensor((192,), VECTOR, "n", 1),
        matrix(64, 192, "m, n", 2),
    )
    assert orders(dsc) == [["mb", "out"], ["out", "mb"], ["mb", "out"]]
    assert list(dsc["primaryDsInfo_"]) == ["OUTPUT"]
    assert scales(dsc) == [[1, 1], [-1, 1], [1, 1]]
    # All cores read all of it.
    assert starts(dsc, 1) == [SEGMENT] * 4
    assert folds(dsc, 1, "mb") == ([1, 0, 0, 1], [1, 1, 1, 1])
    assert folds(dsc, 1, "out") == ([192, 0, 0, 64, 1], [1, 1, 1, 3, 64])
    # Not a reduction: only the two inputs are read.
    assert dsc["computeOp_"][0]["inputLabeledDs"] == ["Tensor0-idx0", "Tensor1-idx1"]


def test_restickify() -> None:
    """(128, 192) from columns to rows in the lanes, in 2 by 3 blocks of 64 by 64."""
    top, dsc = parts(
        "spyre.kernel.restickify [m = 128 over 2, n = 192 over 3]",
        matrix(128, 192, "m, n", 0),
        Tensor((128, 192), ROWS_IN_LANES, "m, n", 1),
    )
    assert list(top) != [] and top["numCoresUsed_"] == 6
    # The two sticks differ, so there are two classes, labelled in operand order.
    assert dsc["primaryDsInfo_"] == {
        "OUTPUT": {"layoutDimOrder_": ["mb", "out"], "stickDimOrder_": ["out"], "stickSize_": [64]},
        "KERNEL": {"layoutDimOrder_": ["out", "mb"], "stickDimOrder_": ["mb"], "stickSize_": [64]},
    }
    # The first dim is the fastest over cores. Source: 64 rows are 64 sticks, 64 columns a column of 128 sticks. Target:
    # 64 rows are a column of 192 sticks, 64 columns 64 sticks.
    assert starts(dsc, 0) == [64 * 128 * (core % 2) + 128 * 128 * (core // 2) for core in range(6)]
    assert starts(dsc, 1) == [SEGMENT + 192 * 128 * (core % 2) + 64 * 128 * (core // 2) for core in range(6)]
    assert scales(dsc) == [[1, 1], [1, 1]]
    assert dsc["computeOp_"][0]["opFuncName"] == "ReStickifyOpHBM"


def test_product_with_a_divided_sum() -> None:
    """(64, 256) times (256, 128), rows in 2, columns in 2, sum in 4: the four cores of one result are neighbours."""
    top, dsc = parts(
        'spyre.kernel.compute "batchmatmul" [m = 64 over 2, n = 128 over 2, k = 256 over 4]',
        matrix(64, 256, "m, k", 0),
        matrix(256, 128, "k, n", 1),
        matrix(64, 128, "m, n", 2),
    )
    assert list(top["numWkSlicesPerDim_"].items()) == [("mb", 2), ("out", 2), ("in", 4)]
    # The divided sum is the fastest over cores, and stands first in the table.
    assert list(top["coreIdToWkSlice_"]["6"].items()) == [("in", 2), ("mb", 1), ("out", 0)]
    assert list(dsc["primaryDsInfo_"]) == ["INPUT", "KERNEL", "OUTPUT"]
    assert orders(dsc) == [["mb", "in"], ["in", "out"], ["mb", "out"]]
    assert scales(dsc) == [[1, 1]] * 3
    k, m, n = ([core // step % count for core in range(16)] for step, count in ((1, 4), (4, 2), (8, 2)))
    # 64 of the sum are one stick: on the left a column of 64 sticks, on the right 64 rows. 32 rows are 32
    # sticks; 64 columns are a column of 256 sticks on the right and of 64 in the result. The sum does not move that.
    assert starts(dsc, 0) == [64 * 128 * k[core] + 32 * 128 * m[core] for core in range(16)]
    assert starts(dsc, 1) == [SEGMENT + 64 * 128 * k[core] + 256 * 128 * n[core] for core in range(16)]
    assert starts(dsc, 2) == [2 * SEGMENT + 32 * 128 * m[core] + 64 * 128 * n[core] for core in range(16)]
    (compute,) = dsc["computeOp_"]
    assert (compute["exUnit"], compute["opFuncName"]) == ("pt", "batchmatmul")
    assert compute["inputLabeledDs"] == ["Tensor0-idx0", "Tensor1-idx1"]


def test_gather() -> None:
    """96 rows of a table of (300, 128), in 3 slices of one stick of indices each."""
    top, dsc = parts(
        "spyre.kernel.gather axis 0 [s = 96 over 3, h = 128]",
        Tensor((96,), VECTOR, "s", 0, "SENUINT32"),
        Tensor((300, 128), "order [0, 1], stick 1", "0, h", 1),
        matrix(96, 128, "s, h", 2),
    )
    assert list(top["numWkSlicesPerDim_"].items()) == [("mb", 3), ("out", 1)]
    index, table, result = dsc["scheduleTree_"]
    assert [node["indirectAllocType_"] for node in (index, table, result)] == [
        "index_tensor",
        "value_tensor",
        "no_indirection",
    ]
    # Each names the other; only the index tensor says what its numbers are, and only it never passes through LX.
    assert (index["relatedIndirectAccessAlloc_"], index["indexTensorType_"]) == ("allocate-Tensor1_hbm", "index")
    assert table["relatedIndirectAccessAlloc_"] == "allocate-Tensor0_hbm"
    assert [list(operand["memOrg_"]) for operand in dsc["labeledDs_"]] == [["hbm"], ["hbm", "lx"], ["hbm", "lx"]]
    # Indices are 32-bit: 32 to a stick. The index's dim stands where the table's picked dim is, the outermost.
    assert dsc["primaryDsInfo_"]["KERNEL_IDX"] == {
        "layoutDimOrder_": ["mb"],
        "stickDimOrder_": ["mb"],
        "stickSize_": [32],
    }
    assert [operand["dsType_"] for operand in dsc["labeledDs_"]] == ["KERNEL_IDX", "OUTPUT", "OUTPUT"]
    assert orders(dsc) == [["mb"], ["out", "mb"], ["mb", "out"]]
    assert scales(dsc) == [[1], [1, 1], [1, 1]]
    # 96 indices are fewer than 300 rows: the limit of the picked dim is 1.
    assert [node["maxDimSizes_"] for node in (index, table, result)] == [[-1], [-1, 1], [-1, -1]]
    # A slice of 32 indices is one stick of them, and 32 sticks of rows in the result; the table starts where it starts.
    assert starts(dsc, 0) == [0, 128, 256]
    assert starts(dsc, 1) == [SEGMENT] * 3
    assert starts(dsc, 2) == [2 * SEGMENT + 32 * 128 * core for core in range(3)]
    (compute,) = dsc["computeOp_"]
    assert compute["inputLabeledDs"] == ["Tensor1-idx1"]
    assert compute["indirectAccessIndexLabeledDs"] == ["Tensor0-idx0"]
    assert compute["attributes_"]["dataFormat_"] == DL16


def test_where_no_operand_has_a_dense_stick() -> None:
    """Row statistics plus a number, 96 rows on 32 cores: a dim of one stick is added, and every operand has it.

    One loop, so rows are out. The added dim takes the label with the number of loops, mb being number 0: x.
    """
    top, dsc = parts(
        'spyre.kernel.compute "add" [m = 96 over 32]',
        Tensor((96,), SPARSE_VECTOR, "m", 0),
        Tensor((), "order [unit], stick unit", "", 1),
        Tensor((96,), SPARSE_VECTOR, "m", 2),
    )
    assert list(top["numWkSlicesPerDim_"].items()) == [("out", 32), ("x", 1)]
    assert dsc["N_"] == {"name_": "n", "out_": 96, "x_": 64}
    # The number lacks the rows; the added stick stands behind everything, and is there: 1.
    assert orders(dsc) == [["out", "x"], ["out", "x"], ["out", "x"]]
    assert dsc["primaryDsInfo_"] == {
        "OUTPUT": {"layoutDimOrder_": ["out", "x"], "stickDimOrder_": ["x"], "stickSize_": [64]}
    }
    assert scales(dsc) == [[1, 1], [-1, 1], [1, 1]]
    # Rows are sticks: three per core. All cores read the one stick of the number.
    assert starts(dsc, 0) == [3 * 128 * core for core in range(32)]
    assert starts(dsc, 1) == [SEGMENT] * 32
    assert folds(dsc, 2, "x") == ([64, 0, 0, 64, 1], [1, 1, 1, 1, 64])
    assert folds(dsc, 1, "out") == ([1, 0, 0, 1], [1, 1, 1, 1])


def test_sum_where_no_operand_has_a_dense_stick() -> None:
    """Sums over 8 of (8, 16) row statistics: nothing is reduced in a stick, so the name takes the suffix."""
    _, dsc = parts(
        'spyre.kernel.compute "sum" [r = 8, m = 16]',
        Tensor((8, 16), "order [1, 0, unit], stick unit", "r, m", 0),
        Tensor((16,), SPARSE_VECTOR, "m", 1),
    )
    # The result's loop first: m is mb, r is out; two loops, so the added dim is number 2 of mb, x, y.
    assert dsc["N_"] == {"name_": "n", "mb_": 16, "out_": 8, "y_": 64}
    assert dsc["computeOp_"][0]["opFuncName"] == "sumnonstick"
    assert orders(dsc)[1] == ["mb", "out", "y"]
    assert [dict(zip(dsc["primaryDsInfo_"]["OUTPUT"]["layoutDimOrder_"], s, strict=True)) for s in scales(dsc)] == [
        {"mb": 1, "out": 1, "y": 1},
        {"mb": 1, "out": -1, "y": 1},
    ]
