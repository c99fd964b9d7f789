"""Operands read from example files: what each part of the file gives, and every contradiction with its place."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from spyre_mlir.dialects.superdsc.codec.cursor import Cursor
from spyre_mlir.dialects.superdsc.codec.describe import describe_json
from spyre_mlir.dialects.superdsc.codec.describe_operand import read_operands
from spyre_mlir.dialects.superdsc.model.descriptor import (
    Indirect,
    IndirectKind,
    OpClass,
    Operand,
    Window,
)
from spyre_mlir.errors import ReadError, SpyreError, UnsupportedError
from tests.unit.backend.check.cases import ADD, LX, MATMUL, RESTICK, SEGMENT, SUM, drop, put
from tests.unit.dialects.superdsc.cases import DL16
from tests.unit.dialects.superdsc.check.cases import Change, opened, starts, symbolic, update


def read(file: str, *changes: Change, **view: Any) -> tuple[Operand, ...]:
    """The operands of a changed file, whose other parts are as they were."""
    whole = replace(describe_json(opened(file).value), operands=(), **view)
    return read_operands(Cursor(opened(file, *changes).dsc, "$"), whole)


def refused(kind: type[SpyreError], file: str, *changes: Change, **view: Any) -> tuple[str | None, str]:
    """Where and with what words the changed file is refused."""
    with pytest.raises(kind) as caught:
        read(file, *changes, **view)
    return caught.value.where, caught.value.message


def entry(number: int, **members: object) -> Change:
    return update(lambda f: f.operand(number), **members)


def node(number: int, **members: object) -> Change:
    return update(lambda f: f.node(number), **members)


def layout(name: str = "OUTPUT", **members: object) -> Change:
    return update(lambda f: f.dsc["primaryDsInfo_"][name], **members)


def test_operands_of_an_addition() -> None:
    """(128, 256) halves on 32 cores, four rows of 128 bytes each; every operand in a segment of its own."""
    start = tuple(str(2 * SEGMENT + 512 * core) for core in range(32))
    assert read(ADD)[2] == Operand(("mb", "out"), (128, 256), "out", DL16, start)
    assert len(read(ADD)) == 3


def test_an_operand_without_the_stick_dim_is_sparse() -> None:
    assert [(one.order, one.stick) for one in read(SUM)] == [(("mb", "out"), "out"), (("mb",), None)]


def test_in_a_scratchpad_extents_are_of_one_core() -> None:
    """Of 4096 by 128 by 4, cut in 8 and 4."""
    source, target = read(LX)
    assert (source.component, source.extents, target.extents) == ("lx", (128, 512, 1), (512, 128, 1))


def test_nodes_belong_to_operands_by_number() -> None:
    swapped = read(ADD, node(0, ldsIdx_=1), node(1, ldsIdx_=0))
    assert [one.start[0] for one in swapped] == [str(SEGMENT), "0", str(2 * SEGMENT)]


@pytest.mark.parametrize(
    ("changes", "kind", "where", "message"),
    [
        (
            [node(1, nodeType_="loop")],
            UnsupportedError,
            "$.scheduleTree_[1]",
            'a schedule node that is no allocate: {"nodeType_":"loop",',
        ),
        ([entry(1, ldsIdx_=2)], ReadError, "$.labeledDs_[1].ldsIdx_", "expected 1, got 2"),
        (
            [node(1, ldsIdx_=7)],
            ReadError,
            "$.scheduleTree_",
            "expected an allocate node for operand 1, got nodes for [0, 7, 2]",
        ),
        ([entry(1, dsType_="X")], ReadError, "$.primaryDsInfo_", "expected a member 'X', got members ['OUTPUT']"),
        (
            [node(1, layoutDimOrder_=["mb"])],
            ReadError,
            "$.scheduleTree_[1].layoutDimOrder_",
            "expected the dims of the layout class, ['mb', 'out'], got [\"mb\"]",
        ),
        (
            [layout(layoutDimOrder_=["mb", "x"]), node(0, layoutDimOrder_=["mb", "x"])],
            ReadError,
            "$.scheduleTree_[0].layoutDimOrder_",
            "expected the dims of the layout class, ['mb', 'x'], got [\"mb\",\"x\"]",
        ),
        (
            [layout(stickSize_=[32])],
            ReadError,
            "$.primaryDsInfo_.OUTPUT.stickSize_",
            "expected the 64 elements of a SEN169_FP16 stick, got [32]",
        ),
        ([node(1, component_="l0")], ReadError, "$.scheduleTree_[1].component_", 'expected "hbm" or "lx", got "l0"'),
        (
            [layout(stickDimOrder_=[])],
            ReadError,
            "$.primaryDsInfo_.OUTPUT",
            "expected a size for every dim of the stick",
        ),
        ([layout(stickDimOrder_=["out", "mb"])], ReadError, "$.primaryDsInfo_.OUTPUT", "expected a size for every dim"),
        (
            [layout(stickDimOrder_=["out", "out"], stickSize_=[2, 32])],
            ReadError,
            "$.primaryDsInfo_.OUTPUT",
            "expected a size for every dim of the stick",
        ),
        (
            [layout(stickDimOrder_=["a", "b", "out"], stickSize_=[2, 2, 16])],
            UnsupportedError,
            "$.primaryDsInfo_.OUTPUT",
            "a stick made of more than two dims: ",
        ),
        (
            [entry(1, dataFormat_="FP7")],
            UnsupportedError,
            "$.labeledDs_[1].dataFormat_",
            'a data format we do not know: "FP7"',
        ),
        (
            [entry(1, wordLength=4)],
            ReadError,
            "$.labeledDs_[1].wordLength",
            "expected the 2 bytes of SEN169_FP16, got 4",
        ),
        (
            [entry(1, scale_=[1])],
            ReadError,
            "$.labeledDs_[1].scale_",
            "expected one scale per dim of ['mb', 'out'], got [1]",
        ),
        (
            [entry(1, scale_=[0, 1])],
            UnsupportedError,
            "$.labeledDs_[1].scale_[0]",
            "a scale that is not 1, -1 or -2: 0",
        ),
        (
            [node(1, isStartAddrSymbolic_=2)],
            ReadError,
            "$.scheduleTree_[1].isStartAddrSymbolic_",
            "expected a boolean or 0/1, got 2",
        ),
        (
            [starts(1, lambda core: 64 * core)],
            ReadError,
            "$.scheduleTree_[1].startAddressCoreCorelet_.data_.[1, 0, 0]",
            'expected an address that is a multiple of 128, got "64"',
        ),
        (
            [starts(1, lambda core: -128)],
            ReadError,
            "$.scheduleTree_[1].startAddressCoreCorelet_.data_.[0, 0, 0]",
            'expected an address that is a multiple of 128, got "-128"',
        ),
        (
            [symbolic(1), starts(1, lambda core: core - 1)],
            ReadError,
            "$.scheduleTree_[1].startAddressCoreCorelet_.data_.[1, 0, 0]",
            'expected a negative symbol id, got "0"',
        ),
        (
            [node(1, indirectAllocType_="none")],
            ReadError,
            "$.scheduleTree_[1].indirectAllocType_",
            "expected no_indirection or one of ['index_tensor', 'value_tensor'], got \"none\"",
        ),
        (
            [node(1, indirectAllocType_="value_tensor", relatedIndirectAccessAlloc_="allocate-Tensor_hbm")],
            ReadError,
            "$.scheduleTree_[1].relatedIndirectAccessAlloc_",
            'expected the name of an allocate node, got "allocate-Tensor_hbm"',
        ),
        (
            [node(1, indirectAllocType_="value_tensor", relatedIndirectAccessAlloc_="allocate-Tensor" + "9" * 5000)],
            ReadError,
            "$.scheduleTree_[1].relatedIndirectAccessAlloc_",
            "expected the name of an allocate node, got ",
        ),
        (
            [node(1, backGapCore_={"mb": {"0": "1", "1": "2"}})],
            UnsupportedError,
            "$.scheduleTree_[1].backGapCore_.mb",
            'back gaps that differ between cores: {"0":"1","1":"2"}',
        ),
    ],
)
def test_what_is_wrong_is_named(changes: list[Change], kind: type[SpyreError], where: str, message: str) -> None:
    place, text = refused(kind, ADD, *changes)
    assert (place, text[: len(message)]) == (where, message)


def test_files_need_not_say_what_follows() -> None:
    """The reader asks for neither coordinates nor word length, nor the kind of a node of an older file."""
    less = [drop(lambda f: f.node(0), key) for key in ("coordinates_", "indirectAllocType_")]
    assert read(ADD, *less, drop(lambda f: f.operand(0), "wordLength")) == read(ADD)


def test_symbolic_starts_are_kept_as_ids() -> None:
    one = read(ADD, symbolic(1), starts(1, lambda core: -1 - core))[1]
    assert (one.symbolic, one.start[:2]) == (True, ("-1", "-2"))
    assert read(ADD, node(1, isStartAddrSymbolic_=False))[1].symbolic is False


def test_gaps_widen_extents() -> None:
    gaps = node(1, backGapCore_={"mb": {"-1": "3"}, "out": {"-1": 64}})
    assert read(ADD, gaps)[1].extents == (131, 320)
    local = node(1, backGapCore_={"x": {str(core): "64" for core in range(32)}})
    assert read(LX, local, drop(lambda f: f.node(1), "coordinates_"))[1].extents == (576, 128, 1)


def test_two_dims_in_a_stick() -> None:
    """Two of in and 64 of out in 128 bytes of FP8; then no dim has 64 lanes alone."""
    two = layout("KERNEL", stickDimOrder_=["in", "out"], stickSize_=[2, 64])
    weights = entry(1, dataFormat_="SEN143_FP8", wordLength=1)
    one = read(MATMUL, two, weights, drop(lambda f: f.node(1), "coordinates_"))[1]
    assert (one.stick, one.second_stick, one.stick_lanes) == ("out", ("in", 2), {"in": 2, "out": 64})


def test_links_of_a_gather() -> None:
    index = node(0, indirectAllocType_="index_tensor", relatedIndirectAccessAlloc_="allocate-Tensor1_hbm")
    value = node(
        1, indirectAllocType_="value_tensor", relatedIndirectAccessAlloc_="allocate-Tensor0_hbm", maxDimSizes_=[1, -1]
    )
    links = [one.indirect for one in read(ADD, index, value)]
    assert links == [Indirect(IndirectKind.INDEX, 1), Indirect(IndirectKind.VALUE, 0, (1, -1)), None]


COORDINATES = "$.scheduleTree_[0].coordinates_.coordInfo"


def test_coordinates_say_what_sizes_say() -> None:
    """Four rows a core: the next core is four on. The second lane of a stick is one on."""
    wrong = put(lambda f: f.coordinate(0, "mb")["folds"]["dim_prop_func"][0]["Affine"], "alpha_", 8)
    place, text = refused(ReadError, ADD, wrong)
    assert place == f"{COORDINATES}.mb.folds.dim_prop_func[0]"
    assert text == 'expected {"Affine":{"alpha_":4,"beta_":0}}, got {"Affine":{"alpha_":8,"beta_":0}}'
    wrong = put(lambda f: f.coordinate(0, "out")["folds"]["dim_prop_attr"][4], "factor_", 32)
    place, text = refused(ReadError, ADD, wrong)
    assert place == f"{COORDINATES}.out.folds.dim_prop_attr[4]"
    assert text.startswith('expected {"factor_":64,"label_":"elem_arr_0"}')


def test_coordinates_of_other_dims_and_of_more_folds() -> None:
    place, text = refused(ReadError, ADD, put(lambda f: f.node(0)["coordinates_"]["coordInfo"], "x", {}))
    assert (place, text) == (f"{COORDINATES}.x", "expected dims ['mb', 'out'], got x")
    place, text = refused(UnsupportedError, ADD, lambda f: f.coordinate(0, "mb")["folds"]["dim_prop_func"].pop())
    assert place == f"{COORDINATES}.mb.folds.dim_prop_func"
    assert text.startswith("3 coordinate folds where 4 are understood: ")


TABLE = "$.scheduleTree_[1].coordinates_.coreIdToWkSlice_"


def spread(row: Any, cores: int = 32) -> Change:
    rows = {str(core): row(core) for core in range(cores)}
    return put(lambda f: f.node(1)["coordinates_"], "coreIdToWkSlice_", rows)


def test_a_distribution_that_is_the_operations_is_none_of_its_own() -> None:
    assert read(LX, spread(lambda core: {"mb": core % 4, "x": core // 4, "out": 0}))[1].slices == ()
    one = read(LX, spread(lambda core: {"mb": core % 4, "x": core // 4, "out": 0}), op_class=OpClass.SHUFFLE)[1]
    assert one.slices[5] == {"mb": 1, "x": 1, "out": 0}
    assert len(one.slices) == 32


def test_a_distribution_of_an_operands_own() -> None:
    """Four slices of x of 1024 rows each, eight of mb: its extents follow its own slices, and so must its folds."""
    other = spread(lambda core: {"mb": 0, "x": core // 8, "out": 0})
    bare = put(lambda f: f.node(1)["coordinates_"], "coordInfo", {})
    one = read(LX, other, bare)[1]
    assert (one.slices[31], one.extents) == ({"mb": 0, "x": 3, "out": 0}, (1024, 128, 4))
    place, _ = refused(ReadError, LX, other)
    assert place == "$.scheduleTree_[1].coordinates_.coordInfo.x.folds.dim_prop_func[0]"


@pytest.mark.parametrize("row", [{"mb": 0, "x": 0}, {"mb": 0, "x": 0, "out": 0, "y": 0}, {"mb": 0, "x": -1, "out": 0}])
def test_a_row_names_the_operands_dims_and_no_others(row: dict[str, int]) -> None:
    place, text = refused(ReadError, LX, spread(lambda core: row))
    assert place == f"{TABLE}.0"
    expected = "a slice of every dim of the operand ['x', 'out', 'mb'], and of no dim but ['mb', 'x', 'out']"
    assert text.startswith(f"expected {expected}, got ")


def test_in_hbm_operands_are_spread_as_the_operation() -> None:
    place, text = refused(UnsupportedError, ADD, spread(lambda core: {"mb": 31 - core, "out": 0}))
    assert place == TABLE
    assert text.startswith("an operand in HBM spread over the cores in another way than the DSC: ")
    assert read(ADD, spread(lambda core: {"mb": core, "out": 0})) == read(ADD)


# Rows of the input are walked over: 130 are stored for 128 outputs.
WINDOWS = (Window("mb", "out", 132, front=1, back=1),)


@pytest.mark.parametrize(("gap", "fits"), [("2", True), ("0", True), ("3", False), ("1", False)])
def test_a_gap_beside_a_window_is_what_the_window_stores(gap: str, fits: bool) -> None:
    """The file may write what is stored beyond the outputs as a gap."""
    bare = drop(lambda f: f.node(0), "coordinates_")
    changes = node(0, padding_={}, backGapCore_={"mb": {"-1": gap}}), bare
    if fits:
        assert [one.extents for one in read(ADD, *changes, windows=WINDOWS)] == [(130, 256), (128, 256), (128, 256)]
    else:
        place, text = refused(UnsupportedError, ADD, *changes, windows=WINDOWS)
        assert place == "$.scheduleTree_[0].backGapCore_.mb"
        assert text.startswith("a gap beside a window: ")


@pytest.mark.parametrize(
    ("file", "number", "gap", "unclear"),
    [
        (RESTICK, 0, {"mb": {"-1": "28"}}, True),
        (RESTICK, 0, {"mb": {"-1": "64"}}, False),
        (RESTICK, 1, {"out": {"-1": "63"}}, True),
        (ADD, 0, {"mb": {"-1": "28"}}, False),
        (LX, 1, {"mb": {str(core): "28" for core in range(32)}}, False),
        (LX, 1, {"out": {str(core): "28" for core in range(32)}}, True),
    ],
)
def test_gaps_of_less_than_a_stick_in_a_restickify_may_be_shortfalls(
    file: str, number: int, gap: dict[str, object], unclear: bool
) -> None:
    """Along the other operand's stick only."""
    change = node(number, backGapCore_=gap)
    if not unclear:
        assert read(file, change)
        return
    with pytest.raises(UnsupportedError) as caught:
        read(file, change)
    (label,) = gap
    assert caught.value.where == f"$.scheduleTree_[{number}].backGapCore_"
    text = f"a restickify whose dim {label} has a gap of less than a stick, which may be a shortfall: "
    assert caught.value.message.startswith(text)
    assert caught.value.hint == "pad both dims to whole sticks before the restickify"
