"""The ops of the dialect: their texts, what they know of each other, and what their verifiers look at."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import StringAttr, UnitAttr
from xdsl.ir import Operation
from xdsl.utils.exceptions import ParseError, VerifyException

from spyre_mlir.dialects.superdsc.dialect.attributes import JsonAttr
from spyre_mlir.dialects.superdsc.dialect.ops import (
    AllocateOp,
    DscOp,
    FieldsOp,
    LabeledDsOp,
    SdscComputeOp,
    SdscConstantOp,
    SdscOp,
    root_properties,
)
from spyre_mlir.dialects.superdsc.model.descriptor import Version
from spyre_mlir.dialects.superdsc.model.file_context import FileContext, LabeledDs, LayoutClass
from spyre_mlir.dialects.superdsc.model.json_value import JsonObject
from tests.unit.dialects.superdsc.dialect.texts import parsed, written

TEXT = """\
superdsc.sdsc @"0_clip" version TSNEW splits {mb = 2} {
  superdsc.dsc clip sizes {mb = 4} classes {OUTPUT = [mb] stick {mb = 2}} {
    superdsc.allocate 0 in hbm [mb] start 0 + 128 * mb
    superdsc.labeled_ds 0 OUTPUT SEN169_FP16 scale [1]
    superdsc.constant "7" bits 3 of SEN169_FP16 named "clip min"
    superdsc.compute sfp clip SEN169_FP16 [0] -> [0]
  }
}"""


def text_of(op: Operation) -> str:
    return written(lambda printer: printer.print_op(op))


def sdsc(text: str) -> SdscOp:
    op = parsed(text)
    assert isinstance(op, SdscOp)
    return op


def test_a_file_is_written_and_read() -> None:
    op = sdsc(TEXT)
    op.verify()
    assert text_of(op) == TEXT
    (dsc,) = op.dscs()
    kinds = [type(inner) for inner in dsc.body.block.ops]
    assert kinds == [AllocateOp, LabeledDsOp, SdscConstantOp, SdscComputeOp]
    assert [len(dsc.items(kind)) for kind in (AllocateOp, LabeledDsOp, SdscConstantOp, SdscComputeOp)] == [1, 1, 1, 1]
    assert not any(inner.attributes for inner in op.walk())


def test_what_the_text_leaves_out_is_there_after_reading() -> None:
    op = sdsc(TEXT)
    (dsc,) = op.dscs()
    assert (op["numCoresUsed_"], dsc["coreIdsUsed_"], op["nothing"]) == (2, [0, 1], None)
    node, operand, constant, compute = (inner for inner in dsc.body.block.ops if isinstance(inner, FieldsOp))
    assert (node["name_"], operand["dsName_"], compute["location"]) == ("allocate-Tensor0_hbm", "Tensor0", "Inner")
    assert node["coordinates_"] is not None
    data = constant["data_"]
    assert isinstance(data, dict)
    assert data["data_"] == {"[0, 0, 0]": ["3"]}  # the newest files hold texts


def test_ops_know_the_rest_of_their_file() -> None:
    op = sdsc(TEXT)
    (dsc,) = op.dscs()
    expected = FileContext(
        version=Version.TSNEW,
        splits={"mb": 2},
        sizes={"mb": 4},
        layouts={"OUTPUT": LayoutClass(("mb",), ("mb",))},
        operands={0: LabeledDs("OUTPUT", (1,), "SEN169_FP16")},
        components={0: "hbm"},
        has_constants=True,
    )
    assert dsc.context() == expected
    assert all(inner.context() == expected for inner in dsc.body.block.ops if isinstance(inner, FieldsOp))
    assert op.context() == FileContext(version=Version.TSNEW, splits={"mb": 2})
    assert AllocateOp({}).context() == DscOp("a", {}, []).context() == FileContext()


def test_an_entry_has_the_operands_number() -> None:
    assert (AllocateOp({"ldsIdx_": 3}).index, LabeledDsOp({"ldsIdx_": "x"}).index, SdscComputeOp({}).index) == (
        3,
        "x",
        None,
    )


def test_root_keys_that_are_no_ascii_stand_beside_the_symbol() -> None:
    assert root_properties("0_add") == {"sym_name": StringAttr("0_add")}
    assert root_properties("ö") == {"sym_name": StringAttr("\\xf6"), "root": JsonAttr.of("ö")}
    op = SdscOp("ö", {}, [])
    assert (op.root_key, op.sym_name.data) == ("ö", "\\xf6")
    assert text_of(op) == 'superdsc.sdsc @"\\\\xf6" root "\\C3\\B6" {\n}'
    assert sdsc(text_of(op)).root_key == "ö"
    assert SdscOp("0_add", {}, []).root_key == "0_add"


@pytest.mark.parametrize(
    ("version", "shown", "file"),
    [
        (Version.TS25, " version TS25", "sdsc_12_add_x.json"),
        (Version.TS26, "", "sdsc_12.json"),
        (Version.TSNEW, " version TSNEW", "sdsc_12.json"),
    ],
)
def test_generations_are_written_where_they_are_not_the_usual_one(version: Version, shown: str, file: str) -> None:
    op = SdscOp("12_add_x", {}, [], version)
    assert text_of(op) == f'superdsc.sdsc @"12_add_x"{shown} {{\n}}'
    again = sdsc(text_of(op))
    assert (again.generation, again.file_name) == (version, file)


def test_generations_that_nobody_knows_are_refused() -> None:
    with pytest.raises(ParseError, match="TS25"):
        sdsc("superdsc.sdsc @a version TS27 {}")
    op = SdscOp("a", {}, [])
    op.properties["version"] = StringAttr("TS27")
    with pytest.raises(VerifyException, match="version must be one of"):
        op.verify()


def test_names_are_words_or_texts() -> None:
    assert text_of(DscOp("a b", {}, [])) == 'superdsc.dsc "a b" {\n}'
    assert text_of(SdscConstantOp("k", {"x": 1})) == "superdsc.constant k fields {x = 1}"
    assert text_of(SdscOp("a", {}, [DscOp("b", {}, [])])) == "superdsc.sdsc @a {\n  superdsc.dsc b {\n  }\n}"


def test_other_attributes_are_written_after_the_fields() -> None:
    op = SdscOp("a", {"x": 1}, [])
    op.attributes["mark"] = UnitAttr()
    assert text_of(op) == "superdsc.sdsc @a fields {x = 1} attributes {mark} {\n}"
    assert sdsc(text_of(op)).attributes == {"mark": UnitAttr()}


def test_the_short_form_of_an_op_alone_is_unfinished() -> None:
    op = parsed("superdsc.compute sfp add SEN169_FP16 [0] -> [1]")
    assert list(op.attributes) == ["partial"]
    assert "partial" not in text_of(op)
    with pytest.raises(VerifyException, match="in short form outside"):
        op.verify()


def _dsc(*body: AllocateOp | LabeledDsOp | SdscComputeOp, **fields: int) -> SdscOp:
    sizes: JsonObject = {"N_": {"name_": "n", "mb_": fields.pop("mb", 4)}}
    return SdscOp(
        "a", {"numWkSlicesPerDim_": {"mb": 2}, "numCoresUsed_": fields.pop("cores", 2)}, [DscOp("a", sizes, body)]
    )


def test_verifiers_look_at_every_op() -> None:
    _dsc().verify()
    for wrong, message in (
        (_dsc(cores=4), "numCoresUsed_ is 4"),
        (_dsc(mb=5), "N_ of mb is 5"),
        (_dsc(AllocateOp({"ldsIdx_": 1})), "allocate node is for operand 1"),
        (_dsc(LabeledDsOp({"ldsIdx_": 0}), SdscComputeOp({"inputLabeledDs": ["Tensor1-idx1"]})), "names operand 1"),
        (_dsc(LabeledDsOp({"ldsIdx_": "0"})), "ldsIdx_ must be an integer"),
        (
            _dsc(LabeledDsOp({"ldsIdx_": 0}), AllocateOp({"ldsIdx_": 0, "layoutDimOrder_": [], "maxDimSizes_": [1]})),
            "maxDimSizes_ has 1 entries for 0 dims",
        ),
        (SdscOp("a", {"numCoresUsed_": "2"}, []), "numCoresUsed_ must be an integer"),
    ):
        with pytest.raises(VerifyException, match=message):
            wrong.verify()


def test_ops_stand_in_their_parents() -> None:
    op = SdscOp("a", {}, [])
    op.body.block.add_op(AllocateOp({}))
    with pytest.raises(VerifyException, match=r"superdsc\.dsc"):
        op.verify()
    nested = DscOp("a", {}, [])
    nested.body.block.add_op(DscOp("b", {}, []))
    with pytest.raises(VerifyException, match=r"superdsc\.sdsc"):
        SdscOp("a", {}, [nested]).verify()
