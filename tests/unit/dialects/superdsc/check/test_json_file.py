"""A file as its rules see it: sizes, places and bytes of example files worked out by hand, and looks that fail."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spyre_mlir.dialects.superdsc.check.json_file import DATA_DSCS, DIM_KEYS, OperandJson, SdscJson
from spyre_mlir.dialects.superdsc.codec.cursor import Misread
from spyre_mlir.errors import ReadError, UnsupportedError
from spyre_mlir.hw.spec import SPYRE
from tests.unit.backend.check.cases import (
    ADD,
    BACK_END,
    BIAS,
    CLIP,
    K_SPLIT,
    LX,
    PADDED,
    RESTICK,
    SUM,
    drop,
    gather,
    put,
)
from tests.unit.dialects.superdsc.check.cases import Change, sdsc, short, symbolic, update


def operand(number: int, file: str, *changes: Change) -> OperandJson:
    return sdsc(file, *changes).dscs[0].operands[number]


def entry(number: int, **members: object) -> Change:
    return update(lambda f: f.operand(number), **members)


def node(number: int, **members: object) -> Change:
    return update(lambda f: f.node(number), **members)


def layout(**members: object) -> Change:
    return update(lambda f: f.dsc["primaryDsInfo_"]["OUTPUT"], **members)


def test_keys_of_dims_and_of_data_movement() -> None:
    assert DATA_DSCS == ("datadscs_", "dataOpdscs_")
    assert {"mb_", "out_", "in_", "x1_", "kij_"} < DIM_KEYS
    assert "name_" not in DIM_KEYS
    assert len(DIM_KEYS) == 21


def test_splits_make_cores_and_slices() -> None:
    view = sdsc(RESTICK)
    assert (view.splits, view.cores) == ({"mb": 2, "out": 4}, 8)
    assert view.slices[3] == {"mb": 1, "out": 1}
    assert len(view.slices) == 8
    assert view.spec is SPYRE


def test_a_split_is_one_or_more() -> None:
    with pytest.raises(Misread, match="expected one slice or more, got 0") as caught:
        _ = sdsc(ADD, put(lambda f: f.top["numWkSlicesPerDim_"], "out", 0)).splits
    assert caught.value.path == "$.0_add.numWkSlicesPerDim_.out"


def test_cores_are_no_more_than_the_card_has() -> None:
    view = sdsc(ADD, put(lambda f: f.top["numWkSlicesPerDim_"], "out", 2))
    with pytest.raises(Misread, match="at most 32 slices in all, one per core of the card"):
        _ = view.cores
    assert SdscJson(view.root, view.top, replace(SPYRE, cores_per_card=64)).cores == 64


def test_a_file_may_have_no_computation() -> None:
    assert sdsc(ADD, drop(lambda f: f.top, "dscs_")).dscs == ()
    assert list(sdsc(BACK_END).operands) == []


def test_the_parts_of_a_file() -> None:
    view = sdsc(ADD)
    (dsc,) = view.dscs
    assert (dsc.name, dsc.function, dsc.at.path) == ("add", "add", "$.0_add.dscs_[0].add")
    assert [one.number for one in view.operands] == [0, 1, 2]
    assert view.members[0].path == "$.0_add.sdscFoldProps_"
    assert view.op.root_key == "0_add"
    assert (dsc.sizes, dsc.per_core("mb"), dsc.per_core("out")) == ({"mb": 128, "out": 256}, 4, 256)
    assert (dsc.constants, dsc.masks, dsc.windows) == ({}, {}, {})


def test_why_the_reader_does_not_take_a_file() -> None:
    assert sdsc(ADD).unread is None
    assert isinstance(sdsc(BACK_END).unread, UnsupportedError)
    assert isinstance(sdsc(ADD, update(lambda f: f.top, numCoresUsed_=3)).unread, ReadError)


def test_a_dim_without_a_split_has_no_slice() -> None:
    with pytest.raises(Misread, match="a split of dim x") as caught:
        sdsc(ADD).dscs[0].per_core("x")
    assert caught.value.path == "$.0_add.numWkSlicesPerDim_"


def test_operands_belong_to_their_nodes() -> None:
    swapped = node(0, ldsIdx_=1), node(1, ldsIdx_=0)
    assert operand(0, ADD, *swapped).node.path.endswith("scheduleTree_[1]")
    with pytest.raises(Misread, match=r"an allocate node for operand 1, got nodes for \[0, 7, 2\]"):
        operand(0, ADD, node(1, ldsIdx_=7))
    with pytest.raises(Misread, match=r"expected an integer, got \[1\]"):
        operand(0, ADD, node(1, ldsIdx_=[1]))


def test_references_are_numbers_of_operands() -> None:
    dsc = sdsc(SUM).dscs[0]
    assert (dsc.references("inputLabeledDs"), dsc.references("interimLabeledDs_")) == ([0, 1], [])
    assert dsc.output.number == 1
    for names, expected in ((["Tensor0"], 'references like "Tensor0-idx0"'), (["Tensor2-idx2"], "operands 0 to 1")):
        broken = sdsc(SUM, update(lambda f: f.compute, inputLabeledDs=names)).dscs[0]
        with pytest.raises(Misread, match=f"expected {expected}, got"):
            broken.references("inputLabeledDs")
    two = sdsc(SUM, update(lambda f: f.compute, outputLabeledDs=["Tensor0-idx0", "Tensor1-idx1"])).dscs[0]
    with pytest.raises(Misread, match="expected one operand"):
        _ = two.output


def test_constants_masks_and_windows_by_name() -> None:
    assert list(sdsc(CLIP).dscs[0].constants) == ["0", "1"]
    masks = sdsc(PADDED).dscs[0].masks
    assert {label: place.value for label, place in masks.items()} == {"out": [[200, 56]]}
    assert sdsc(PADDED, drop(lambda f: f.dsc, "coordinateMasking_")).dscs[0].masks == {}
    windowed = sdsc(ADD, update(lambda f: f.dsc["N_"], paddingSizes_={"mb": {}})).dscs[0]
    assert list(windowed.windows) == ["mb"]


def test_layout_scales_and_own_dims() -> None:
    bias = operand(1, BIAS)
    assert bias.layout.path.endswith("primaryDsInfo_.OUTPUT")
    assert (bias.scales, bias.order, bias.own) == ({"mb": -1, "out": 1}, ["out", "mb"], ["out"])
    assert (bias.stick, bias.lanes, bias.component, bias.gaps) == ("out", 64, "hbm", {})


@pytest.mark.parametrize(
    ("change", "look", "expected"),
    [
        (entry(1, scale_=[1]), "scales", r"one scale per dim of \['mb', 'out'\]"),
        (layout(layoutDimOrder_=["mb", "mb"]), "scales", r"one scale per dim of \['mb', 'mb'\]"),
        (node(1, layoutDimOrder_=["mb"]), "order", r"the dims of the layout class, \['mb', 'out'\]"),
        (
            put(lambda f: f.top, "numWkSlicesPerDim_", {"mb": 32}),
            "own",
            r"dims of the work division, \['mb'\], got",
        ),
        (layout(stickDimOrder_=[]), "stick", "a stick dim"),
        (entry(1, dataFormat_="FP7"), "lanes", "one of SEN169_FP16, IEEE_FP32, "),
        (node(1, component_="ddr"), "component", '"hbm" or "lx", got "ddr"'),
    ],
)
def test_looks_that_fail_say_what_they_need(change: Change, look: str, expected: str) -> None:
    with pytest.raises(Misread, match=expected):
        getattr(operand(1, ADD, change), look)


def test_an_operand_that_lacks_a_dim_need_not_divide_it() -> None:
    one = operand(1, ADD, entry(1, scale_=[1, -1]), put(lambda f: f.top, "numWkSlicesPerDim_", {"mb": 32}))
    assert one.own == ["mb"]


def test_indices_and_gathered_tensors() -> None:
    index, table, result = sdsc(ADD, gather("mb")).dscs[0].operands
    assert [one.is_index for one in (index, table, result)] == [True, False, False]
    assert [one.is_gathered for one in (index, table, result)] == [False, True, False]
    assert index.lanes == 32
    assert not operand(0, ADD, drop(lambda f: f.node(0), "indirectAllocType_")).is_gathered


@pytest.mark.parametrize(
    ("file", "changes", "plain"),
    [
        (ADD, [], True),
        (ADD, [node(0, indirectAllocType_="value_tensor")], False),
        (ADD, [node(0, indirectAllocType_="index_tensor")], True),
        (ADD, [node(0, padding_={})], False),
        (ADD, [update(lambda f: f.dsc["N_"], paddingSizes_={"mb": {}})], False),
        (ADD, [update(lambda f: f.dsc["N_"], paddingSizes_={})], True),
        (ADD, [put(lambda f: f.node(0)["coordinates_"], "coreIdToWkSlice_", {"0": {}})], False),
        (ADD, [drop(lambda f: f.node(0), "coordinates_")], True),
        (ADD, [layout(stickDimOrder_=["mb", "out"])], False),
        (ADD, [node(0, backGapCore_={"mb": {"-1": "3"}})], True),
        (RESTICK, [node(0, backGapCore_={"mb": {"-1": "3"}})], False),
        (RESTICK, [node(0, backGapCore_={"mb": {"-1": "0"}})], True),
    ],
)
def test_plain_operands_follow_from_sizes_and_slices(file: str, changes: list[Change], plain: bool) -> None:
    assert operand(0, file, *changes).is_plain is plain


def test_steps_and_bytes_of_rows_divided_over_cores() -> None:
    """128 rows by 4 sticks, the rows of a stick column together; a core has 4 rows of each column."""
    one = operand(0, ADD)
    assert (one.steps, one.box) == ({"mb": 128, "out": 128 * 128}, {"mb": 4, "out": 4})
    assert one.touched_bytes == 3 * 128 + 3 * 16384 + 128
    assert [one.offset(core) for core in (0, 1, 31)] == [0, 512, 31 * 512]


def test_a_cut_stick_counts_as_a_whole_one() -> None:
    one = operand(0, ADD, put(lambda f: f.dsc["N_"], "out_", 200))
    assert (one.count("out", 64), one.count("out", 65), one.count("mb", 65)) == (1, 2, 65)
    assert one.box == {"mb": 4, "out": 4}


def test_gaps_widen_steps() -> None:
    """The largest of the cores' counts, so 6 rows more in every column."""
    one = operand(0, ADD, node(0, backGapCore_={"mb": {"0": "4", "1": 6}, "out": {}}))
    assert one.gaps == {"mb": 6, "out": 0}
    assert one.steps == {"mb": 128, "out": 134 * 128}


def test_a_scratchpad_holds_one_cores_slice() -> None:
    """512 rows by 128 columns of each core: two columns of sticks."""
    one = operand(0, LX)
    assert (one.steps, one.box) == ({"out": 128, "x": 256, "mb": 131072}, {"out": 2, "x": 512, "mb": 1})
    assert (one.touched_bytes, one.offset(31)) == (131072, 0)


def test_offsets_of_a_divided_product() -> None:
    """in is cut in 4, mb in 4, out in 2; in is the fastest. A: 64 rows = 8192 B per mb, 65536 B per in."""
    one = operand(0, K_SPLIT)
    assert [one.offset(core) for core in (1, 4, 16, 31)] == [65536, 8192, 0, 3 * 65536 + 3 * 8192]


def test_symbolic_operands() -> None:
    assert not operand(0, ADD).symbolic
    assert operand(0, ADD, symbolic(0)).symbolic
    assert not operand(0, ADD, node(0, isStartAddrSymbolic_=0)).symbolic


def test_starts_are_places_by_core() -> None:
    starts = operand(1, ADD).starts
    assert [place.number() - (1 << 34) for place in starts] == [512 * core for core in range(32)]
    place = "scheduleTree_[1].startAddressCoreCorelet_.data_.[31, 0, 0]"
    assert short(starts[31].path, sdsc(ADD)) == place
