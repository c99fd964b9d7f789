"""The files the front end wrote come out of hand-written descriptors, key order included."""

from __future__ import annotations

import json
from dataclasses import replace

import jsonschema_rs
import pytest

from spyre_mlir.dialects.superdsc.codec import build as codec_build
from spyre_mlir.dialects.superdsc.codec import described
from spyre_mlir.dialects.superdsc.codec.build import build
from spyre_mlir.dialects.superdsc.codec.describe import describe
from spyre_mlir.dialects.superdsc.codec.described import certainty
from spyre_mlir.dialects.superdsc.codec.mirror import sdsc_to_json
from spyre_mlir.dialects.superdsc.dialect.ops import SdscOp
from spyre_mlir.dialects.superdsc.model.certainty import certainty_of
from spyre_mlir.dialects.superdsc.model.descriptor import (
    Constant,
    Descriptor,
    Dim,
    Indirect,
    IndirectKind,
    OpClass,
    Operand,
    Version,
    core_slices,
    start_offsets,
)
from spyre_mlir.errors import EmitError
from tests.paths import DATA
from tests.unit.dialects.superdsc.cases import CASES, DL16, Case, starts


def spelled(value: object) -> str:
    """Spelling that shows values, types and key order."""
    return json.dumps(value)


def schema() -> dict[str, object]:
    """The published schema, with symbolic start addresses allowed to be a boolean or 0/1 as files write them."""
    text = (DATA / "sdsc_schema.json").read_text()
    loaded = json.loads(text)

    def patch(node: object) -> None:
        if isinstance(node, dict):
            if "isStartAddrSymbolic_" in node:
                node["isStartAddrSymbolic_"] = {"enum": [True, False, 0, 1]}
            for value in node.values():
                patch(value)
        if isinstance(node, list):
            for value in node:
                patch(value)

    patch(loaded)
    return loaded


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.file.rpartition("/")[2])
def test_descriptor_gives_the_file(case: Case) -> None:
    expected = json.loads((DATA / f"{case.file}.json").read_text())
    assert spelled(sdsc_to_json(build(case.descriptor, case.version))) == spelled(expected)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.file.rpartition("/")[2])
def test_emitted_json_passes_the_schema(case: Case) -> None:
    jsonschema_rs.validate(schema(), sdsc_to_json(build(case.descriptor, case.version)))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.file.rpartition("/")[2])
def test_start_offsets_agree_with_the_addresses_by_hand(case: Case) -> None:
    descriptor = case.descriptor
    for operand in descriptor.operands:
        base = int(operand.start[0])
        offsets = start_offsets(descriptor.dims, operand, descriptor.op_class)
        assert offsets == tuple(int(address) - base for address in operand.start)


def _add(**changes: object) -> Descriptor:
    dims = (Dim("mb", 4, 2), Dim("out", 128))
    operand = Operand(("mb", "out"), (4, 128), "out", DL16, starts(2, lambda core: 256 * core))
    plain = Descriptor(0, "add", "sfp", OpClass.POINTWISE, dims, (operand, operand, operand))
    return replace(plain, **changes)  # type: ignore[arg-type]


def _dsc(descriptor: Descriptor, version: Version = Version.TS26) -> dict[str, object]:
    (fields,) = sdsc_to_json(build(descriptor, version)).values()
    ((_, dsc),) = fields["dscs_"][0].items()  # type: ignore[index,union-attr,call-overload]
    return dsc  # type: ignore[return-value]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.file.rpartition("/")[2])
def test_what_is_built_is_as_certain_as_what_is_read_back(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    op = build(case.descriptor, case.version)
    expected = certainty_of(describe(op))

    def forbidden(_: SdscOp) -> None:
        raise AssertionError("described")

    monkeypatch.setattr(described, "describe", forbidden)
    monkeypatch.setattr(described, "_first", forbidden)
    assert certainty(op) == certainty(build(case.descriptor, case.version)) == expected


def test_symbolic_operands_carry_the_flag_and_the_ids() -> None:
    operand = Operand(("mb", "out"), (4, 128), "out", DL16, ("-1", "-2"), symbolic=True)
    descriptor = _add(operands=(operand,) * 3)
    node = _dsc(descriptor)["scheduleTree_"][0]  # type: ignore[index]
    assert node["isStartAddrSymbolic_"] == 1
    assert node["startAddressCoreCorelet_"]["data_"] == {"[0, 0, 0]": "-1", "[1, 0, 0]": "-2"}
    jsonschema_rs.validate(schema(), sdsc_to_json(build(descriptor)))


def test_a_slice_of_a_larger_buffer_has_a_back_gap() -> None:
    sliced = Operand(("mb", "out"), (10, 256), "out", DL16, ("0", "256"))
    plain = _add().operands[0]
    dsc = _dsc(_add(operands=(sliced, plain, plain)))
    assert dsc["scheduleTree_"][0]["backGapCore_"] == {"mb": {"-1": "6"}, "out": {"-1": "128"}}  # type: ignore[index]
    assert describe(build(_add(operands=(sliced, plain, plain)))).operands[0].extents == (10, 256)


def test_lx_extents_are_those_of_one_core() -> None:
    local = Operand(("mb", "out"), (3, 128), "out", DL16, ("1024", "1024"), component="lx")
    dsc = _dsc(_add(operands=(local,) * 3))
    assert dsc["scheduleTree_"][0]["name_"] == "allocate-Tensor0_lx"  # type: ignore[index]
    assert dsc["scheduleTree_"][0]["backGapCore_"] == {"mb": {"0": "1", "1": "1"}}  # type: ignore[index]
    assert dsc["labeledDs_"][0]["memOrg_"] == {"lx": {"isPresent": 1}}  # type: ignore[index]
    assert describe(build(_add(operands=(local,) * 3))).operands[0].extents == (3, 128)


def test_scalar_operand_lists_dims_as_its_class_and_scales_minus_two() -> None:
    scalar = Operand((), (), None, DL16, ("0", "0"))
    plain = _add().operands[0]
    dsc = _dsc(_add(operands=(plain, scalar, plain)))
    assert dsc["scheduleTree_"][1]["layoutDimOrder_"] == ["mb", "out"]  # type: ignore[index]
    assert dsc["labeledDs_"][1]["scale_"] == [-1, -2]  # type: ignore[index]


def test_newest_products_list_the_batch_dims_that_only_the_second_operand_has() -> None:
    """[4, 64] times [3, 64, 128]: x counts the batch."""
    dims = (Dim("x", 3), Dim("mb", 4), Dim("out", 128), Dim("in", 64))
    left = Operand(("mb", "in"), (4, 64), "in", DL16, ("0",))
    right = Operand(("in", "out", "x"), (64, 128, 3), "out", DL16, ("1024",))
    result = Operand(("mb", "out", "x"), (4, 128, 3), "out", DL16, ("65536",))
    product = Descriptor(0, "batchmatmul", "pt", OpClass.MATMUL, dims, (left, right, result))
    for version, order, scale in (
        (Version.TS26, ["mb", "in"], [1, 1]),
        (Version.TSNEW, ["mb", "in", "x"], [1, 1, -1]),
    ):
        op = build(product, version)
        ((_, dsc),) = sdsc_to_json(op)["0_batchmatmul"]["dscs_"][0].items()  # type: ignore[index, union-attr]
        assert dsc["scheduleTree_"][0]["layoutDimOrder_"] == order  # type: ignore[index, call-overload]
        assert dsc["labeledDs_"][0]["scale_"] == scale  # type: ignore[index, call-overload]
        assert describe(op).operands == product.operands


def test_gather_links_index_and_value() -> None:
    """Rows of a (1000, 128) table by 4 indices: index tensor first, in its own class, out of the inputs."""
    index = Operand(("mb",), (32,), "mb", "SENUINT32", ("0",), indirect=Indirect(IndirectKind.INDEX, 1))
    value = Operand(
        ("mb", "out"), (1000, 128), "out", DL16, ("128",), indirect=Indirect(IndirectKind.VALUE, 0, (1, -1))
    )
    out = Operand(("mb", "out"), (32, 128), "out", DL16, ("1280",))
    dims = (Dim("mb", 32), Dim("out", 128))
    descriptor = Descriptor(0, "identity", "sfp", OpClass.GATHER, dims, (index, value, out))
    dsc = _dsc(descriptor)
    nodes, operands, (compute,) = dsc["scheduleTree_"], dsc["labeledDs_"], dsc["computeOp_"]  # type: ignore[misc]
    assert [node["indirectAllocType_"] for node in nodes] == ["index_tensor", "value_tensor", "no_indirection"]  # type: ignore[union-attr]
    assert nodes[0]["relatedIndirectAccessAlloc_"] == "allocate-Tensor1_hbm"  # type: ignore[index]
    assert nodes[0]["indexTensorType_"] == "index"  # type: ignore[index]
    assert nodes[1]["maxDimSizes_"] == [1, -1]  # type: ignore[index]
    assert [entry["dsType_"] for entry in operands] == ["KERNEL_IDX", "OUTPUT", "OUTPUT"]  # type: ignore[union-attr]
    assert operands[0]["memOrg_"] == {"hbm": {"isPresent": 1}}  # type: ignore[index]
    assert compute["inputLabeledDs"] == ["Tensor1-idx1"]
    assert compute["indirectAccessIndexLabeledDs"] == ["Tensor0-idx0"]
    assert compute["attributes_"]["dataFormat_"] == DL16
    assert describe(build(descriptor)) == replace(descriptor, op_format=DL16)


def test_newest_files_have_stage_objects_and_constants_as_text() -> None:
    descriptor = _add(constants=(Constant("c", DL16, 7),))
    dsc = _dsc(descriptor, Version.TSNEW)
    assert dsc["constantInfo_"]["0"]["data_"]["data_"] == {"[0, 0, 0]": ["7"]}  # type: ignore[index]
    assert "paddingSizes_" in dsc["dataStageParam_"]["0"]["ss_"]  # type: ignore[index]


def test_first_dim_is_fastest_except_for_a_split_contraction() -> None:
    dims = (Dim("mb", 4, 2), Dim("out", 64), Dim("in", 128, 2))
    assert [list(row.values()) for row in core_slices(dims, OpClass.POINTWISE)] == [
        [0, 0, 0],
        [1, 0, 0],
        [0, 0, 1],
        [1, 0, 1],
    ]
    rows = core_slices(dims, OpClass.MATMUL)
    assert [(row["in"], row["mb"]) for row in rows] == [(0, 0), (1, 0), (0, 1), (1, 1)]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dims": (Dim("mb", 5, 2), Dim("out", 128))}, "5 elements do not divide into 2 slices"),
        ({"dims": (Dim("mb", 4, 4), Dim("out", 128))}, "2 start addresses for 4 cores"),
        ({"dims": (Dim("mb", 8, 2), Dim("out", 128))}, "dim mb needs 4 more elements"),
        ({"dims": (Dim("mb", 4), Dim("out", 128, 4))}, "2 start addresses for 4 cores"),
        ({"dims": (Dim("mb", 4), Dim("out", 64, 2))}, "a slice of stick dim out is 32 elements, sticks hold 64"),
        ({"mask_constant": 0}, "mask constant 0 of 0 constants"),
    ],
)
def test_contradictions_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(EmitError, match=message):
        build(_add(**changes))


def test_nine_operands_are_refused() -> None:
    with pytest.raises(EmitError, match="9 operands in labeledDs_, a kernel takes 8"):
        build(_add(operands=_add().operands * 3))


def test_an_address_inside_a_stick_is_refused() -> None:
    crooked = replace(_add().operands[0], start=("0", "100"))
    with pytest.raises(EmitError, match=r"core \[1, 0, 0\] is 100, which is no multiple of 128"):
        build(_add(operands=(crooked, *_add().operands[1:])))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.file.rpartition("/")[2])
def test_a_twin_has_its_own_number_and_addresses(case: Case) -> None:
    """Of two descriptors that differ in nothing else the second is built from the first."""
    first = case.descriptor
    build(first, case.version)
    moved = [replace(x, start=tuple(str(int(start) + 1280) for start in x.start)) for x in first.operands]
    second = replace(first, index=first.index + 11, operands=tuple(moved))
    ((root, fields),) = json.loads((DATA / f"{case.file}.json").read_text()).items()
    (dsc,) = fields["dscs_"][0].values()
    for node in dsc["scheduleTree_"]:
        data = node["startAddressCoreCorelet_"]["data_"]
        data |= {core: str(int(start) + 1280) for core, start in data.items()}
    expected = {f"{second.index}_{root.partition('_')[2]}": fields}
    assert spelled(sdsc_to_json(build(second, case.version))) == spelled(expected)


def test_a_twin_is_whole_where_another_thread_forgets_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    first = _add()
    expected = sdsc_to_json(build(replace(first, index=5)))
    build(first)
    kept, made_of, copied = list[list[object]](), codec_build._made, codec_build.copy_of
    monkeypatch.setattr(codec_build, "_made", lambda alike: kept.append(made_of(alike)) or kept[-1])

    def copy_when_forgotten(op: SdscOp) -> SdscOp:
        kept[-1].clear()
        return copied(op)

    monkeypatch.setattr(codec_build, "copy_of", copy_when_forgotten)
    assert spelled(sdsc_to_json(build(replace(first, index=5)))) == spelled(expected)


def test_cores_with_slices_of_their_own_have_no_twin_in_those_without() -> None:
    plain = _add()
    turned = tuple(reversed(core_slices(plain.dims, plain.op_class)))
    tables = [sdsc_to_json(build(_add(slices=slices)))["0_add"]["coreIdToWkSlice_"] for slices in ((), turned)]  # type: ignore[index,call-overload]
    assert tables[0] == {str(core): row for core, row in enumerate(reversed(turned))}
    assert tables[1] == {str(core): row for core, row in enumerate(turned)}
