"""The ops of the dialect: their texts, what they know of each other, and what their verifiers look at."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, UnitAttr, i64
from xdsl.ir import Operation
from xdsl.pattern_rewriter import PatternRewriter, PatternRewriteWalker, RewritePattern, op_type_rewrite_pattern
from xdsl.utils.exceptions import ParseError, VerifyException

from spyre_mlir.dialects.superdsc.dialect.attributes import JsonAttr
from spyre_mlir.dialects.superdsc.dialect.fields_op import FieldsOp
from spyre_mlir.dialects.superdsc.dialect.ops import (
    AllocateOp,
    DscOp,
    LabeledDsOp,
    SdscComputeOp,
    SdscConstantOp,
    SdscOp,
    name_attribute,
    name_text,
    root_properties,
)
from spyre_mlir.dialects.superdsc.model.descriptor import Version
from spyre_mlir.dialects.superdsc.model.file_context import FileContext, LabeledDs, LayoutClass
from spyre_mlir.dialects.superdsc.model.json_value import JsonObject
from tests.unit.dialects.superdsc.dialect.texts import parsed, written

TEXT = """\
superdsc.sdsc @"0_clip" version TSNEW splits {mb = 2} {
  superdsc.dsc clip sizes {mb = 4} classes {OUTPUT = [mb] stick {mb = 2}} {
    %a0 = superdsc.allocate 0 in hbm [mb] start 0 + 128 * mb
    %t0 = superdsc.labeled_ds 0 OUTPUT SEN169_FP16 scale [1] at %a0
    superdsc.constant "7" bits 3 of SEN169_FP16 named "clip min"
    superdsc.compute sfp clip SEN169_FP16 (%t0) -> (%t0)
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


def test_what_decides_is_typed() -> None:
    (dsc,) = sdsc(TEXT).dscs()
    node, operand, constant, compute = dsc.body.block.ops
    assert isinstance(node, AllocateOp)
    assert (node.index, node.component, node.symbolic) == (IntegerAttr(0, i64), StringAttr("hbm"), None)
    assert node.start is not None
    assert node.start.get_values() == (0, 128)
    assert isinstance(operand, LabeledDsOp)
    assert (operand.layout_class, operand.format) == (StringAttr("OUTPUT"), StringAttr("SEN169_FP16"))
    assert list(operand.places) == [node.result]
    assert isinstance(constant, SdscConstantOp)
    assert (constant.key, constant.label) == (StringAttr("7"), StringAttr("clip min"))
    assert constant.data is not None
    assert constant.data.bits == 3
    assert isinstance(compute, SdscComputeOp)
    assert (compute.unit, compute.function) == (StringAttr("sfp"), StringAttr("clip"))
    assert (list(compute.inputs), list(compute.outputs)) == ([operand.result], [operand.result])
    assert (compute.rest, compute.key_order) == (JsonAttr.of({"location": "Inner"}), None)


def test_names_with_escapes_are_json() -> None:
    assert (name_attribute("add"), name_attribute("ö")) == (StringAttr("add"), JsonAttr.of("ö"))
    assert [name_text(name_attribute(name)) for name in ("add", "ö", 'a"')] == ["add", "ö", 'a"']
    assert name_text(JsonAttr.of(3)) == ""


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
    op = parsed("superdsc.compute sfp add SEN169_FP16 () -> ()")
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


def test_links_are_to_places_and_operands_of_the_same_number() -> None:
    place, operand = AllocateOp({"ldsIdx_": 1}), LabeledDsOp({"ldsIdx_": 0})
    operand.operands = [place.result]
    with pytest.raises(VerifyException, match="operand 0 is at an allocation of operand 1"):
        _dsc(place, operand, LabeledDsOp({"ldsIdx_": 1})).verify()
    unnumbered = LabeledDsOp({})
    compute = SdscComputeOp({"inputLabeledDs": ["Tensor0-idx0"]}, {0: unnumbered.result})
    with pytest.raises(VerifyException, match="inputLabeledDs is linked to an operand without a number"):
        _dsc(unnumbered, compute).verify()


def test_links_stay_inside_their_dsc() -> None:
    operand = LabeledDsOp({"ldsIdx_": 0})
    compute = SdscComputeOp({"inputLabeledDs": ["Tensor0-idx0"]}, {0: operand.result})
    other = DscOp("b", {}, [LabeledDsOp({"ldsIdx_": 0}), compute])
    with pytest.raises(VerifyException, match="value defined out of its IsolatedFromAbove parent"):
        SdscOp("a", {}, [DscOp("a", {}, [operand]), other]).verify()


RELU = """\
superdsc.sdsc @"0_relufwd" splits {mb = 2} {
  superdsc.dsc relufwd sizes {mb = 4} classes {OUTPUT = [mb] stick {mb = 2}} {
    %a0 = superdsc.allocate 0 in SPACE [mb] start 0
    %a1 = superdsc.allocate 1 in hbm [mb] start 128
    %t0 = superdsc.labeled_ds 0 OUTPUT SEN169_FP16 scale [1] at %a0
    %t1 = superdsc.labeled_ds 1 OUTPUT SEN169_FP16 scale [1] at %a1
    superdsc.compute sfp relufwd SEN169_FP16 (%t0) -> (%t1)
  }
}"""


class _MarkReadersOfLx(RewritePattern):
    """Marks an operation that reads an operand in LX: what a pass at this level sees, without reading JSON."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: SdscComputeOp, rewriter: PatternRewriter) -> None:
        operands = [value.owner for value in op.inputs]
        places = [place.owner for operand in operands if isinstance(operand, LabeledDsOp) for place in operand.places]
        if "reads_lx" not in op.attributes and any(
            isinstance(place, AllocateOp) and place.component == StringAttr("lx") for place in places
        ):
            op.attributes["reads_lx"] = UnitAttr()
            rewriter.notify_op_modified(op)


@pytest.mark.parametrize(("space", "marks"), [("lx", 1), ("hbm", 0)])
def test_a_pattern_sees_where_an_input_lies(space: str, marks: int) -> None:
    op = sdsc(RELU.replace("SPACE", space))
    module = ModuleOp([op])
    changed = PatternRewriteWalker(_MarkReadersOfLx()).rewrite_module(module)
    assert changed == bool(marks)
    assert text_of(op).count(" attributes {reads_lx}") == marks


def test_ops_stand_in_their_parents() -> None:
    op = SdscOp("a", {}, [])
    op.body.block.add_op(AllocateOp({}))
    with pytest.raises(VerifyException, match=r"superdsc\.dsc"):
        op.verify()
    nested = DscOp("a", {}, [])
    nested.body.block.add_op(DscOp("b", {}, []))
    with pytest.raises(VerifyException, match=r"superdsc\.sdsc"):
        SdscOp("a", {}, [nested]).verify()
