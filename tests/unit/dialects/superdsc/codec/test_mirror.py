"""JSON to op to text and back loses nothing; the short text says no more and no less than the file."""

from __future__ import annotations

import copy
import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError, VerifyException

from spyre_mlir.dialects.superdsc import JsonAttr, SdscOp, Superdsc
from spyre_mlir.dialects.superdsc.codec.mirror import sdsc_from_json, sdsc_to_json
from tests.paths import DATA

FILES = sorted(path for path in DATA.glob("superdsc_*/*.json") if "segment_size" not in path.name)
ADD = DATA / "superdsc_worked/a32_add_128x256_32core.json"


def load(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text())


def op_of(value: dict[str, Any]) -> SdscOp:
    ((root, fields),) = value.items()
    return sdsc_from_json(root, fields)


def text_of(op: SdscOp, *, generic: bool = False) -> str:
    stream = StringIO()
    Printer(stream, print_generic_format=generic).print_op(ModuleOp([op.clone()]))
    return stream.getvalue()


def parse(text: str) -> SdscOp:
    context = Context()
    context.load_dialect(Builtin)
    context.load_dialect(Superdsc)
    module = Parser(context, text).parse_module()
    module.verify()
    op = module.body.block.first_op
    assert isinstance(op, SdscOp)
    return op


def assert_lossless(value: dict[str, Any]) -> None:
    """Values, types and key order survive the op, the short text and the generic text."""
    op, spelled = op_of(value), json.dumps(value)
    assert json.dumps(sdsc_to_json(op)) == spelled
    for generic in (False, True):
        text = text_of(op, generic=generic)
        assert text.isascii()
        again = parse(text)
        assert json.dumps(sdsc_to_json(again)) == spelled
        assert text_of(again, generic=generic) == text


def dsc_of(value: dict[str, Any]) -> dict[str, Any]:
    ((_, fields),) = value.items()
    ((_, dsc),) = fields["dscs_"][0].items()
    return dsc


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_files_survive(path: Path) -> None:
    assert_lossless(load(path))


def test_all_data_files_are_there() -> None:
    assert len(FILES) == 16


FRONT_END_FILES = [path for path in FILES if "backend_written" not in path.name]


@pytest.mark.parametrize("path", FRONT_END_FILES, ids=lambda path: path.stem)
def test_text_is_short(path: Path) -> None:
    assert len(text_of(op_of(load(path))).splitlines()) <= 16


def test_short_text_of_an_add() -> None:
    assert text_of(op_of(load(ADD))) == (
        "builtin.module {\n"
        '  superdsc.sdsc @"0_add" splits {mb = 32, out = 1} {\n'
        "    superdsc.dsc add sizes {mb = 128, out = 256} classes {OUTPUT = [mb, out] stick {out = 64}} {\n"
        "      %a0 = superdsc.allocate 0 in hbm [mb, out] start 0 + 512 * mb\n"
        "      %a1 = superdsc.allocate 1 in hbm [mb, out] start 17179869184 + 512 * mb\n"
        "      %a2 = superdsc.allocate 2 in hbm [mb, out] start 34359738368 + 512 * mb\n"
        "      %t0 = superdsc.labeled_ds 0 OUTPUT SEN169_FP16 scale [1, 1] at %a0\n"
        "      %t1 = superdsc.labeled_ds 1 OUTPUT SEN169_FP16 scale [1, 1] at %a1\n"
        "      %t2 = superdsc.labeled_ds 2 OUTPUT SEN169_FP16 scale [1, 1] at %a2\n"
        "      superdsc.compute sfp add SEN169_FP16 (%t0, %t1) -> (%t2)\n"
        "    }\n"
        "  }\n"
        "}"
    )


def _edit(edit: Any) -> dict[str, Any]:
    value = load(ADD)
    edit(value["0_add"], dsc_of(value))
    return value


def _reverse(node: dict[str, Any]) -> None:
    items = list(node.items())
    node.clear()
    node.update(reversed(items))


def _irregular(dsc: dict[str, Any]) -> None:
    dsc["scheduleTree_"][1]["startAddressCoreCorelet_"]["data_"]["[7, 0, 0]"] = "640"


EDITS: dict[str, Any] = {
    "unknown keys": lambda top, dsc: (top.update(fork=[1, {"a": None}]), dsc.update(fork_={"x": True})),
    "unknown key that is a name in text": lambda top, dsc: top.update(splits=3),
    "two such keys": lambda top, dsc: dsc["labeledDs_"][0].update({"class": 1, "=zz": 2}),
    "non-ASCII": lambda top, dsc: (
        top.update({"größe": "α\u2028\ud800"}),
        dsc["computeOp_"][0].update(opFuncName="añadir"),
    ),
    "strings with quotes": lambda top, dsc: top.update({'a"b\\n': 'line\nbreak\t"x" \\0A \x00'}),
    "empty key": lambda top, dsc: top.update({"": ""}),
    "floats": lambda top, dsc: top.update(f=[1.0, -0.5, 1e300, 1e-7, 1.5e22, -2, 10**30]),
    "booleans beside numbers": lambda top, dsc: top.update(f=[True, 1, 1.0, False, 0, None]),
    "key order": lambda top, dsc: (_reverse(top), _reverse(dsc), _reverse(dsc["scheduleTree_"][0])),
    "irregular addresses": lambda top, dsc: _irregular(dsc),
    "integer addresses": lambda top, dsc: dsc["scheduleTree_"][0]["startAddressCoreCorelet_"]["data_"].update(
        {"[0, 0, 0]": 0}
    ),
    "padded decimal": lambda top, dsc: dsc["scheduleTree_"][0]["startAddressCoreCorelet_"]["data_"].update(
        {"[0, 0, 0]": "00"}
    ),
    "symbolic": lambda top, dsc: dsc["scheduleTree_"][0].update(isStartAddrSymbolic_=1),
    "symbolic as boolean": lambda top, dsc: dsc["scheduleTree_"][0].update(isStartAddrSymbolic_=True),
    "missing keys": lambda top, dsc: (top.pop("sdscFolds_"), dsc["labeledDs_"][2].pop("memOrg_")),
    "other core map": lambda top, dsc: top["coreIdToWkSlice_"]["3"].update(mb=4),
    "no splits": lambda top, dsc: top.pop("numWkSlicesPerDim_"),
    "empty splits": lambda top, dsc: top.update(numWkSlicesPerDim_={}, numCoresUsed_=1),
    "two DSCs": lambda top, dsc: top["dscs_"].append(copy.deepcopy(top["dscs_"][0])),
    "odd dscs_": lambda top, dsc: top.update(dscs_=[{"a": {}, "b": {}}, 3]),
    "loop node": lambda top, dsc: dsc["scheduleTree_"].append({"nodeType_": "loop"}),
    "empty constants": lambda top, dsc: dsc.update(constantInfo_={}),
    "odd constants": lambda top, dsc: dsc.update(constantInfo_={"0": {"name_": "c"}, "k": {"data_": []}}),
    "two sticks": lambda top, dsc: dsc["primaryDsInfo_"]["OUTPUT"].update(
        stickDimOrder_=["a", "a"], stickSize_=[2, 64]
    ),
    "reference to nothing": lambda top, dsc: dsc["computeOp_"][0].update(
        inputLabeledDs=["Tensor0-idx0", "Tensor7-idx7"]
    ),
    "outputs alone are regular": lambda top, dsc: dsc["computeOp_"][0].update(inputLabeledDs="Tensor0-idx0"),
    "no inputs": lambda top, dsc: dsc["computeOp_"][0].update(inputLabeledDs=[], outputLabeledDs=[]),
    "indices": lambda top, dsc: dsc["computeOp_"][0].update(indirectAccessIndexLabeledDs=["Tensor1-idx1"]),
    "indices in front": lambda top, dsc: (
        dsc["computeOp_"][0].update(indirectAccessIndexLabeledDs=["Tensor1-idx1"]),
        _reverse(dsc["computeOp_"][0]),
    ),
    "two nodes of an operand": lambda top, dsc: dsc["scheduleTree_"].append(
        dict(dsc["scheduleTree_"][0], component_="lx")
    ),
    "two operands of a number": lambda top, dsc: dsc["labeledDs_"].append(dict(dsc["labeledDs_"][0])),
    "numbers of other kinds": lambda top, dsc: (
        dsc["scheduleTree_"][0].update(ldsIdx_="0"),
        dsc["scheduleTree_"][1].update(ldsIdx_=10**30),
        dsc["labeledDs_"][1].update(ldsIdx_=1.0),
        dsc["labeledDs_"][2].update(ldsIdx_=-2),
    ),
    "linked without a head": lambda top, dsc: (
        dsc["labeledDs_"][0].update(scale_="x"),
        dsc["computeOp_"][0].update(attributes_=None),
    ),
    "two operations": lambda top, dsc: dsc["computeOp_"].append(copy.deepcopy(dsc["computeOp_"][0])),
    "words of the text": lambda top, dsc: dsc["labeledDs_"][0].update(dsType_="at", dataFormat_="scale"),
    "names beyond ASCII": lambda top, dsc: (
        top["dscs_"].append({"añadir": top["dscs_"][0].pop("add")}),
        top["dscs_"].pop(0),
        dsc.update(constantInfo_={"ä": {"name_": "ü"}}),
    ),
    "gap": lambda top, dsc: dsc["scheduleTree_"][0].update(backGapCore_={"mb": {"-1": "12800"}}),
    "huge splits": lambda top, dsc: (top.update(numWkSlicesPerDim_={"mb": 10**12}), top.pop("numCoresUsed_")),
    "unknown format": lambda top, dsc: dsc["labeledDs_"][0].update(dataFormat_="SEN999"),
    "unit": lambda top, dsc: dsc["computeOp_"][0].update(exUnit="fields"),
}


@pytest.mark.parametrize("name", EDITS)
def test_odd_files_survive(name: str) -> None:
    value = _edit(EDITS[name])
    if name in ("huge splits", "two DSCs"):
        value["0_add"].pop("coreIdToDsc_")
    op = op_of(value)
    assert json.dumps(sdsc_to_json(op)) == json.dumps(value)
    for generic in (False, True):
        text = text_of(op, generic=generic)
        assert text.isascii()
        context = Context()
        context.load_dialect(Builtin)
        context.load_dialect(Superdsc)
        again = Parser(context, text).parse_module().body.block.first_op
        assert isinstance(again, SdscOp)
        assert json.dumps(sdsc_to_json(again)) == json.dumps(value)


def test_root_keys_beyond_ascii_survive() -> None:
    value = {"0_größe": load(ADD)["0_add"]}
    assert_lossless(value)


def test_json_attributes_are_strict() -> None:
    assert JsonAttr.of(1) != JsonAttr.of(True)
    assert JsonAttr.of(1) != JsonAttr.of(1.0)
    assert JsonAttr.of({"a": 1, "b": 2}) != JsonAttr.of({"b": 2, "a": 1})


REFUSED: dict[str, tuple[Any, str]] = {
    "product": (lambda top, dsc: top.update(numCoresUsed_=16), "mb 32 x out 1 = 32 slices, numCoresUsed_ is 16"),
    "cores": (lambda top, dsc: top.update(numCoresUsed_=64), "64, the card has 32 cores"),
    "division": (
        lambda top, dsc: dsc["N_"].update(mb_=100),
        "N_ of mb is 100, which its 32 slices do not divide; pad it to 128",
    ),
    "operand": (lambda top, dsc: dsc["computeOp_"][0].update(inputLabeledDs=["Tensor5-idx5"]), "names operand 5"),
    "node": (lambda top, dsc: dsc["scheduleTree_"][0].update(ldsIdx_=9), "allocate node is for operand 9"),
    "alignment": (
        lambda top, dsc: _irregular_by(dsc, "100"),
        "is 100, which is no multiple of 128 bytes; the stick starts at 0",
    ),
    "negative": (lambda top, dsc: _irregular_by(dsc, "-3"), "negative ids need isStartAddrSymbolic_ = 1"),
    "symbol": (
        lambda top, dsc: dsc["scheduleTree_"][0].update(isStartAddrSymbolic_=1),
        "core [0, 0, 0] is 0; with isStartAddrSymbolic_ it must be a negative symbol id",
    ),
    "words": (lambda top, dsc: _irregular_by(dsc, "here"), "must be a decimal string or an integer"),
    "kind": (lambda top, dsc: dsc.update(maskingConstId_="0"), 'maskingConstId_ must be an integer, got "0"'),
    "nine": (
        lambda top, dsc: dsc["labeledDs_"].extend(dsc["labeledDs_"][:1] * 6),
        "9 operands in labeledDs_, a kernel takes 8",
    ),
}


def _irregular_by(dsc: dict[str, Any], address: str) -> None:
    dsc["scheduleTree_"][1]["startAddressCoreCorelet_"]["data_"]["[7, 0, 0]"] = address


@pytest.mark.parametrize("name", REFUSED)
def test_verifier_says_what_is_wrong(name: str) -> None:
    edit, message = REFUSED[name]
    op = op_of(_edit(edit))
    with pytest.raises(VerifyException) as caught:
        op.verify()
    assert message in str(caught.value)


def test_verifier_accepts_the_files() -> None:
    for path in FILES:
        op_of(load(path)).verify()


def test_short_inner_op_outside_is_refused() -> None:
    text = '"superdsc.sdsc"() <{sym_name = "a", rest = #superdsc.json<{}>}> ({ superdsc.dsc add {} }) : () -> ()'
    with pytest.raises(VerifyException, match="short form outside"):
        parse(text)


def test_duplicate_key_in_text_is_refused() -> None:
    with pytest.raises(ParseError, match="a key occurs twice"):
        parse('superdsc.sdsc @a fields {x = {"a": 1, "a": 2}} {}')
