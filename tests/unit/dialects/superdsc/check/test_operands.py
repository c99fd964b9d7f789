"""Rules about operands, on example files with one change each."""

from __future__ import annotations

import pytest

from spyre_mlir.dialects.superdsc.check import operands
from spyre_mlir.dialects.superdsc.check.operands import RULES
from tests.unit.backend.check.cases import ADD, BIAS, LX, SUM, Opened, drop, gather, put
from tests.unit.dialects.superdsc.check.cases import (
    Change,
    assert_as_published,
    assert_right_files_keep,
    found,
    update,
)


def entry(number: int, **members: object) -> Change:
    return update(lambda f: f.operand(number), **members)


def node(number: int, **members: object) -> Change:
    return update(lambda f: f.node(number), **members)


def layout(name: str = "OUTPUT", **members: object) -> Change:
    return update(lambda f: f.dsc["primaryDsInfo_"].setdefault(name, {}), **members)


def test_rules_are_the_published_ones() -> None:
    names = "operand-count operand-number layout-class scale-values layout-order stick-size word-length memory"
    assert_as_published(RULES, f"{names} dim-limits indirection index-format own-distribution")


def test_right_files_keep_the_rules() -> None:
    assert_right_files_keep(RULES)


@pytest.mark.parametrize(("count", "wrong"), [(0, True), (1, False), (8, False), (9, True)])
def test_a_kernel_takes_one_to_eight_operands(count: int, wrong: bool) -> None:
    entries = put(lambda f: f.dsc, "labeledDs_", [{}] * count)
    expected = [("labeledDs_", "1 to 8 operands", str(count), "split the operation")] if wrong else []
    assert found(operands.operand_count, ADD, entries) == expected


def test_operands_stand_in_order_with_a_node_each() -> None:
    rule = operands.operand_number
    assert found(rule, ADD, entry(1, ldsIdx_=2)) == [("labeledDs_[1].ldsIdx_", "1, the operand's place", "2")]
    only = "the number of an operand that has no other node"
    assert found(rule, ADD, node(1, ldsIdx_=0)) == [("scheduleTree_[1].ldsIdx_", only, "0")]
    assert found(rule, ADD, node(1, ldsIdx_=3)) == [("scheduleTree_[1].ldsIdx_", only, "3")]
    assert found(rule, ADD, node(1, ldsIdx_=-1)) == [("scheduleTree_[1].ldsIdx_", only, "-1")]
    wrong = [("scheduleTree_", "3 allocate nodes", "2")]
    assert found(rule, ADD, lambda f: f.dsc["scheduleTree_"].pop()) == wrong


def test_every_layout_class_is_known_and_some_operands() -> None:
    known = "a class among INPUT, OUTPUT, KERNEL, KERNEL_IDX"
    wrong = [("primaryDsInfo_.MODEL", known, "MODEL")]
    assert found(operands.layout_class, ADD, layout("MODEL")) == wrong
    for name in ("INPUT", "KERNEL", "KERNEL_IDX"):
        wrong = [(f"primaryDsInfo_.{name}", "a class that an operand has, OUTPUT", name)]
        assert found(operands.layout_class, ADD, layout(name)) == wrong


@pytest.mark.parametrize(
    ("scales", "place", "expected"),
    [
        ([0, 1], "scale_[0]", "1, -1 or -2"),
        ([2, 1], "scale_[0]", "1, -1 or -2"),
        ([1, -3], "scale_[1]", "1, -1 or -2"),
        ([-2, 1], "scale_[0]", "-2 on the stick dim out only"),
        ([1, -2], "", ""),
        ([-1, -1], "", ""),
    ],
)
def test_scales_are_three_and_2_is_for_the_stick(scales: list[int], place: str, expected: str) -> None:
    wrong = found(operands.scale_values, BIAS, entry(1, scale_=scales))
    got = str(scales[0 if "[0]" in place else 1])
    assert wrong == ([(f"labeledDs_[1].{place}", expected, got)] if place else [])


def test_own_dims_come_first() -> None:
    rule = operands.layout_order
    wrong = [("scheduleTree_[1].layoutDimOrder_", "the dims ['out'] first", '["mb","out"]')]
    assert found(rule, BIAS, node(1, layoutDimOrder_=["mb", "out"])) == wrong
    rows = entry(1, scale_=[1, -1]), node(1, layoutDimOrder_=["out", "mb"])
    wrong = [("scheduleTree_[1].layoutDimOrder_", "the dims ['mb'] first", '["out","mb"]')]
    assert found(rule, BIAS, *rows) == wrong
    assert found(rule, SUM, node(1, layoutDimOrder_=["out", "mb"])) == []  # sparse: the stick index has its place
    assert found(rule, ADD, node(1, layoutDimOrder_=["out", "mb"])) == []


def test_a_stick_dim_that_no_operand_has_comes_last() -> None:
    """Columns in the stick, named x instead of out, behind the rows that the operand lacks."""

    def named_x(f: Opened) -> None:
        f.top["numWkSlicesPerDim_"] = {"mb": 32, "x": 1}
        f.dsc["N_"]["x_"] = 256
        for part in (f.dsc["primaryDsInfo_"]["OUTPUT"], *f.dsc["scheduleTree_"]):
            part["layoutDimOrder_"] = ["mb", "x"]
        f.dsc["primaryDsInfo_"]["OUTPUT"]["stickDimOrder_"] = ["x"]

    assert found(operands.layout_order, ADD, named_x, entry(1, scale_=[-1, 1])) == []
    first = node(1, layoutDimOrder_=["x", "mb"])
    assert found(operands.layout_order, ADD, named_x, entry(1, scale_=[1, 1]), first) == []


def test_the_stick_is_a_dim_of_the_class() -> None:
    wrong = found(operands.layout_order, ADD, layout(stickDimOrder_=["x"]))
    place = "primaryDsInfo_.OUTPUT.stickDimOrder_"
    assert wrong == [(place, "a dim of the class, ['mb', 'out']", '["x"]')] * 3
    indices = gather("mb"), layout("KERNEL_IDX", stickDimOrder_=["out"])
    assert found(operands.layout_order, ADD, *indices) == []
    wrong = found(operands.layout_order, ADD, gather("mb"), layout("KERNEL_IDX", stickDimOrder_=["x"]))
    assert wrong == [("primaryDsInfo_.KERNEL_IDX.stickDimOrder_", "a dim of the class, ['mb', 'mb', 'out']", '["x"]')]


def test_sticks_hold_what_fits_into_128_bytes() -> None:
    place = "primaryDsInfo_.OUTPUT.stickSize_"
    wrong = [(place, f"[64], the elements of a stick of operand {n}", "[32]") for n in range(3)]
    assert found(operands.stick_size, ADD, layout(stickSize_=[32])) == wrong
    wrong = [(place, "one size per stick dim ['out']", "[32,2]")] * 3
    assert found(operands.stick_size, ADD, layout(stickSize_=[32, 2])) == wrong
    two = layout(stickDimOrder_=["mb", "out"], stickSize_=[2, 64])
    assert found(operands.stick_size, ADD, two) == []
    single = found(operands.stick_size, ADD, entry(1, dataFormat_="IEEE_FP32"))
    assert single == [(place, "[32], the elements of a stick of operand 1", "[64]")]


def test_words_are_as_long_as_their_format() -> None:
    wrong = [("labeledDs_[0].wordLength", "2, the bytes of SEN169_FP16", "4")]
    assert found(operands.word_length, ADD, entry(0, wordLength=4)) == wrong
    assert found(operands.word_length, ADD, drop(lambda f: f.operand(0), "wordLength")) == []
    half = entry(0, dataFormat_="SENINT4", wordLength=0.5)
    assert found(operands.word_length, ADD, half) == []
    ((place, expected, got),) = found(operands.word_length, ADD, entry(0, dataFormat_="FP7"))
    assert (place, got) == ("labeledDs_[0].dataFormat_", '"FP7"')
    assert expected.startswith("one of SEN169_FP16, IEEE_FP32, ")


@pytest.mark.parametrize(
    ("memories", "wrong"),
    [
        ({"lx": {"isPresent": 1}}, True),
        ({"hbm": {"isPresent": 0}, "lx": {"isPresent": 1}}, True),
        ({"hbm": {"isPresent": True}}, False),
        ({"hbm": {"isPresent": 1}}, False),
        ({}, True),
    ],
)
def test_operands_are_present_where_their_node_puts_them(memories: dict[str, dict[str, object]], wrong: bool) -> None:
    got = str(memories).replace("'", '"').replace(" ", "")
    expected = [("labeledDs_[0].memOrg_", "presence in hbm, where its node puts it", got)] if wrong else []
    assert found(operands.memory, ADD, entry(0, memOrg_=memories)) == expected


def test_files_need_not_say_what_follows() -> None:
    for rule, key in ((operands.memory, "memOrg_"), (operands.dim_limits, "maxDimSizes_")):
        place = (lambda f: f.operand(0)) if key == "memOrg_" else (lambda f: f.node(0))
        assert found(rule, ADD, drop(place, key)) == []


def test_dims_have_a_limit_each_or_none() -> None:
    rule, place = operands.dim_limits, "scheduleTree_[0].maxDimSizes_"
    assert found(rule, ADD, node(0, maxDimSizes_=[-1, 0])) == [(f"{place}[1]", "-1 or a positive size", "0")]
    assert found(rule, ADD, node(0, maxDimSizes_=[-2, 1])) == [(f"{place}[0]", "-1 or a positive size", "-2")]
    wrong = [(place, "one limit per dim of ['mb', 'out']", "[-1]")]
    assert found(rule, ADD, node(0, maxDimSizes_=[-1])) == wrong


NAMES = ("allocate-Tensor0_hbm", "allocate-Tensor1_hbm", "allocate-Tensor2_hbm")
PARTNER = "the name of the partner's allocate node"


def linked(index: str, value: str) -> list[Change]:
    return [gather("mb"), node(0, relatedIndirectAccessAlloc_=index), node(1, relatedIndirectAccessAlloc_=value)]


@pytest.mark.parametrize(
    ("index", "value", "wrong"),
    [
        (NAMES[1], NAMES[0], []),
        (NAMES[2], NAMES[0], []),
        (NAMES[0], NAMES[0], [0]),
        (NAMES[1], NAMES[2], [1]),
        ("none", "none", [0, 1]),
    ],
)
def test_index_and_value_name_each_other(index: str, value: str, wrong: list[int]) -> None:
    got = [index, value]
    expected = [(f"scheduleTree_[{n}].relatedIndirectAccessAlloc_", PARTNER, f'"{got[n]}"') for n in wrong]
    assert found(operands.indirection, ADD, *linked(index, value)) == expected


def test_only_indices_are_index_tensors() -> None:
    rule, place = operands.indirection, "scheduleTree_[{}].indirectAllocType_"
    class_only = "index_tensor on the operands of class KERNEL_IDX, and on no other"
    wrong = [(place.format(1), class_only, '"index_tensor"')]
    assert found(rule, ADD, node(1, indirectAllocType_="index_tensor")) == wrong
    wrong = [(place.format(0), class_only, '"no_indirection"')]
    assert found(rule, ADD, *linked(NAMES[1], NAMES[0]), node(0, indirectAllocType_="no_indirection")) == wrong
    wrong = [(place.format(2), "one of no_indirection, index_tensor, value_tensor", '"none"')]
    assert found(rule, ADD, node(2, indirectAllocType_="none")) == wrong
    stray = node(2, relatedIndirectAccessAlloc_="none")
    assert found(rule, ADD, stray) == [("scheduleTree_[2].relatedIndirectAccessAlloc_", PARTNER, '"none"')]
    assert found(rule, ADD, drop(lambda f: f.node(2), "indirectAllocType_"), stray) == []
    assert found(rule, ADD, drop(lambda f: f.node(0), "name_")) == []


def test_indices_are_unsigned_and_in_device_memory() -> None:
    rule, place = operands.index_format, "labeledDs_[0].dataFormat_"
    assert found(rule, ADD, gather("mb")) == []
    wrong = [(place, "SENUINT32 in hbm", "IEEE_INT32 in hbm")]
    assert found(rule, ADD, gather("mb"), entry(0, dataFormat_="IEEE_INT32")) == wrong
    wrong = [(place, "SENUINT32 in hbm", "SENUINT32 in lx")]
    assert found(rule, ADD, gather("mb"), node(0, component_="lx")) == wrong


def test_no_operand_is_spread_in_its_own_way() -> None:
    rule, place = operands.own_distribution, "scheduleTree_[1].coordinates_.coreIdToWkSlice_"

    def spread(rows: object) -> Change:
        return put(lambda f: f.node(1)["coordinates_"], "coreIdToWkSlice_", rows)

    assert found(rule, ADD, spread({"3": {"mb": 3, "out": 0}})) == []
    wrong = [(place, "the DSC's own map, or none", "another one")]
    assert found(rule, ADD, spread({"2": {"mb": 2, "out": 0}, "3": {"mb": 2, "out": 0}})) == wrong
    for core in ("32", "all", "²"):
        assert found(rule, ADD, spread({core: {"mb": 0, "out": 0}})) == wrong
    assert found(rule, LX, drop(lambda f: f.node(1), "coordinates_")) == []
    assert found(rule, ADD, drop(lambda f: f.node(1)["coordinates_"], "coreIdToWkSlice_")) == []
