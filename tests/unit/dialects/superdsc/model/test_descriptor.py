"""What a descriptor says about sizes, layouts and cores, worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spyre_mlir.dialects.superdsc.model.descriptor import (
    ACCUMULATING,
    LAST_LABEL,
    NONSTICK,
    OWN_DIMS,
    WINDOWED,
    Constant,
    Descriptor,
    Dim,
    Indirect,
    IndirectKind,
    OpClass,
    Operand,
    SymbolicSize,
    Version,
    Window,
    core_slices,
    labelled_format,
    slice_order,
    start_offsets,
)
from tests.unit.dialects.superdsc.cases import DL16, small_add


def test_classes_of_operations() -> None:
    windowed = {OpClass.POOLING, OpClass.CONVOLUTION, OpClass.DEPTHWISE}
    assert windowed == WINDOWED
    assert windowed | {OpClass.MATMUL, OpClass.GATHER, OpClass.TOP_K} == OWN_DIMS
    assert {OpClass.REDUCTION, OpClass.DEPTHWISE} == ACCUMULATING
    assert (LAST_LABEL, NONSTICK) == ("out", "nonstick")
    values = "pointwise,reduction,matmul,restickify,gather,shuffle,top-k,pooling,convolution,convolution by channel"
    assert [kind.value for kind in OpClass] == values.split(",")


def test_only_the_oldest_files_carry_the_function() -> None:
    assert Version("TS25").file_name(3, "add") == "sdsc_3_add.json"
    assert Version("TS26").file_name("3", "add") == Version("TSNEW").file_name(3, "add") == "sdsc_3.json"


def test_parts_that_are_left_out() -> None:
    assert Indirect(IndirectKind("index_tensor"), 1).max_sizes == ()
    assert IndirectKind("value_tensor") is IndirectKind.VALUE
    assert SymbolicSize("n", -1).granularity == 1
    dim = Dim("mb", 4)
    assert (dim.split, dim.valid, dim.symbolic, dim.per_core) == (1, None, None, 4)
    operand = small_add().operands[0]
    assert (operand.symbolic, operand.component, operand.indirect) == (False, "hbm", None)
    assert (operand.second_stick, operand.slices) == (None, ())
    view = small_add()
    assert (view.constants, view.mask_constant, view.op_format, view.windows, view.slices) == ((), -1, None, (), ())
    window = Window("i", "ki", 7)
    assert (window.stride, window.dilation, window.front, window.back) == (1, 1, 0, 0)


def test_windows_reach_and_store() -> None:
    """Four windows, two apart, of three places, three apart: the last begins at 6 and ends at 12."""
    window = Window("i", "ki", 16, stride=2, dilation=3, front=1, back=2)
    assert window.stored == 13
    assert window.reach(4, 3) == 13
    assert window.reach(1, 1) == 1


def test_a_slice_is_a_share() -> None:
    assert Dim("mb", 12, 4).per_core == 3


def test_a_dense_operand_counts_sticks() -> None:
    """130 columns are three sticks of 64; the sticks of one column of sticks lie together."""
    operand = Operand(("mb", "out", "x"), (4, 130, 5), "out", DL16, ())
    assert operand.elements_per_stick == 64
    assert (operand.counts(), operand.allocated_sticks()) == ((4, 3, 5), 60)
    assert operand.stick_lanes == {"out": 64}
    assert operand.stick_strides() == {"mb": 1, "out": 4, "x": 12}


def test_a_sparse_operand_counts_elements() -> None:
    operand = Operand(("mb",), (4,), None, "IEEE_FP32", ())
    assert (operand.elements_per_stick, operand.counts(), operand.stick_lanes) == (32, (4,), {})


def test_two_dims_share_a_stick() -> None:
    """128 lanes of FP8: two of in, and 64 of out."""
    operand = Operand(("in", "out"), (6, 128), "out", "SEN143_FP8", (), second_stick=("in", 2))
    assert list(operand.stick_lanes.items()) == [("in", 2), ("out", 64)]
    assert operand.counts() == (3, 2)


def test_counts_need_an_extent_per_dim() -> None:
    with pytest.raises(ValueError, match="shorter"):
        Operand(("mb", "out"), (4,), None, DL16, ()).counts()


def test_parts_of_a_descriptor() -> None:
    first, second, result = (replace(small_add().operands[0], start=(str(n),)) for n in range(3))
    view = small_add(operands=(first, second, result))
    assert (view.cores, view.output, view.inputs) == (2, result, (first, second))
    assert view.dim("out") == Dim("out", 128)
    with pytest.raises(KeyError, match="x"):
        view.dim("x")


@pytest.mark.parametrize("op_class", OpClass)
def test_reductions_are_compared_with_their_input(op_class: OpClass) -> None:
    reduces = op_class in (OpClass.REDUCTION, OpClass.TOP_K, OpClass.POOLING, OpClass.DEPTHWISE)
    view = small_add(op_class=op_class, operands=(small_add().operands[0], Operand((), (), None, DL16, ())))
    assert view.reference is view.operands[0 if reduces else 1]


def test_the_stick_is_the_reference_operands_or_any_or_the_last_dim() -> None:
    plain, rows = small_add().operands[0], replace(small_add().operands[0], stick="mb")
    sparse = Operand(("mb",), (4,), None, DL16, ("0", "0"))
    assert small_add(operands=(rows, plain)).stick == "out"
    assert small_add(operands=(rows, sparse)).stick == "mb"
    assert small_add(operands=(sparse, sparse)).stick == "out"


def _reduction(op_func: str, *kept: str) -> Descriptor:
    result = Operand(kept, (4,) * len(kept), None, DL16, ("0", "0"))
    return small_add(op_func=op_func, op_class=OpClass.REDUCTION, operands=(small_add().operands[0], result))


def test_a_reduction_that_keeps_its_stick_says_so_in_its_name() -> None:
    assert _reduction("sum", "out").op_func_name == "sumnonstick"
    assert _reduction("sum", "mb").op_func_name == "sum"
    assert _reduction("topkvalue", "out").op_func_name == "topkvalue"
    assert small_add(op_func="add").op_func_name == "add"


DIMS = (Dim("mb", 4, 2), Dim("out", 128, 2), Dim("in", 64, 2))


def test_a_divided_sum_is_the_fastest() -> None:
    assert slice_order(DIMS, OpClass.POINTWISE) == DIMS
    assert slice_order(DIMS, OpClass.MATMUL) == (DIMS[2], *DIMS[:2])
    whole = (*DIMS[:2], Dim("in", 64))
    assert slice_order(whole, OpClass.MATMUL) == whole
    assert slice_order((), OpClass.MATMUL) == ()


def test_slices_count_up_from_the_fastest() -> None:
    """Core = mb + 2 * out + 4 * in, but in + 2 * mb + 4 * out in a product."""
    rows = core_slices(DIMS, OpClass.POINTWISE)
    assert [row["mb"] + 2 * row["out"] + 4 * row["in"] for row in rows] == list(range(8))
    rows = core_slices(DIMS, OpClass.MATMUL)
    assert [row["in"] + 2 * row["mb"] + 4 * row["out"] for row in rows] == list(range(8))
    assert list(rows[0]) == ["in", "mb", "out"]
    uneven = core_slices((Dim("a", 6, 3), Dim("b", 4, 2)), OpClass.POINTWISE)
    assert [(row["a"], row["b"]) for row in uneven] == [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)]


def test_the_files_own_slices_are_believed() -> None:
    rows = ({"mb": 1, "out": 0}, {"mb": 0, "out": 0})
    assert small_add(slices=rows).core_slices == rows
    assert small_add().core_slices == ({"mb": 0, "out": 0}, {"mb": 1, "out": 0})
    assert small_add(slices=rows) == small_add()


def test_cores_start_a_slice_apart() -> None:
    """Two rows a core of 128 bytes; one stick of 64 of two, four rows apart; none where the dim is missing."""
    dims = (Dim("mb", 4, 2), Dim("out", 128, 2))
    plain = small_add().operands[0]
    assert start_offsets(dims, plain, OpClass.POINTWISE) == (0, 256, 512, 768)
    assert start_offsets(dims, replace(plain, extents=(8, 128)), OpClass.POINTWISE) == (0, 256, 1024, 1280)
    rows = Operand(("mb",), (4,), None, DL16, ())
    assert start_offsets(dims, rows, OpClass.POINTWISE) == (0, 256, 0, 256)
    assert start_offsets(dims, replace(plain, component="lx"), OpClass.POINTWISE) == (0, 0, 0, 0)


def test_cores_of_a_product_start_by_its_order() -> None:
    """in is the fastest: a stick of 64 of 128 apart, with four rows each."""
    left = Operand(("mb", "in"), (4, 128), "in", DL16, ())
    dims = (Dim("mb", 4, 2), Dim("out", 64), Dim("in", 128, 2))
    assert start_offsets(dims, left, OpClass.MATMUL) == (0, 512, 256, 768)


def test_parts_are_values() -> None:
    parts = [
        Dim("mb", 4),
        Window("i", "ki", 4),
        SymbolicSize("n", -1),
        Constant("c", DL16, 0),
        Indirect(IndirectKind.INDEX, 1),
    ]
    assert len({*parts, *map(replace, parts)}) == len(parts)
    local = replace(small_add().operands[0], slices=({"mb": 0},))
    assert hash(local) == hash(small_add().operands[0])  # rows are no part of it
    assert local != small_add().operands[0]
    assert hash(small_add()) == hash(small_add())


@pytest.mark.parametrize(
    ("function", "stored", "label"),
    [
        ("identity", "IEEE_INT32", "IEEE_FP32"),  # torch-spyre's re-labelling: the same 32 bits
        ("identity", "SENUINT32", "SENUINT32"),
        ("identity", DL16, DL16),
        ("int32tofp32", "IEEE_INT32", "IEEE_INT32"),  # a tensor of a conversion keeps its label there
        ("addi32toi32", "IEEE_INT32", "IEEE_INT32"),
    ],
)
def test_copies_of_integers_are_labelled_as_floats(function: str, stored: str, label: str) -> None:
    assert labelled_format(function, stored) == label
