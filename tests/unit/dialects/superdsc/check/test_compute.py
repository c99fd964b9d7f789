"""Rules about the operation, on example files with one change and on the tables of published functions."""

from __future__ import annotations

import pytest

from spyre_mlir.dialects.superdsc.check import compute
from spyre_mlir.dialects.superdsc.check.compute import RULES
from tests.unit.backend.check.cases import (
    ADD,
    BIAS,
    CLIP,
    MATMUL,
    PADDED,
    RESTICK,
    SUM,
    SUM_ROWS,
    Opened,
    gather,
    put,
)
from tests.unit.dialects.superdsc.check.cases import (
    Change,
    assert_as_published,
    assert_right_files_keep,
    found,
    update,
)

FUNCTION, FORMAT = "computeOp_[0].opFuncName", "computeOp_[0].attributes_.dataFormat_"


def operation(**members: object) -> Change:
    return update(lambda f: f.compute, **members)


def called(name: str) -> Change:
    return operation(opFuncName=name)


def scale(number: int, *scales: int) -> Change:
    return update(lambda f: f.operand(number), scale_=[*scales])


def kind(number: int, name: str) -> Change:
    return update(lambda f: f.operand(number), dataFormat_=name)


def op_kind(name: str) -> Change:
    return put(lambda f: f.compute["attributes_"], "dataFormat_", name)


def test_rules_are_the_published_ones() -> None:
    names = "function-known function-unit function-inputs index-operands function-formats operation-format nonstick"
    assert_as_published(
        RULES, f"{names} result-dims function-sticks function-constants constant-word constant-format mask-word"
    )


def test_right_files_keep_the_rules() -> None:
    assert_right_files_keep(RULES)


def test_functions_are_published_ones() -> None:
    assert found(compute.function_known, ADD, called("gather")) == [(FUNCTION, "a published function", '"gather"')]
    assert found(compute.function_known, ADD, called("sumnonstick")) == []


@pytest.mark.parametrize(
    ("function", "unit", "expected"),
    [
        ("add", "pt", "sfp"),
        ("batchmatmul", "sfp", "pt"),
        ("batchmatmul", "pt", None),
        ("gather", "pt", None),
        ("gather", "sfp", None),
        ("gather", "pe", "sfp or pt"),
    ],
)
def test_matrix_functions_run_on_pt(function: str, unit: str, expected: str | None) -> None:
    wrong = found(compute.function_unit, ADD, operation(opFuncName=function, exUnit=unit))
    assert wrong == ([("computeOp_[0].exUnit", expected, f'"{unit}"')] if expected else [])


def refs(*numbers: int) -> list[str]:
    return [f"Tensor{number}-idx{number}" for number in numbers]


def test_functions_read_their_inputs_in_order() -> None:
    rule, place = compute.function_inputs, "computeOp_[0].inputLabeledDs"
    wrong = [(place, "operands [0, 1] in order", '["Tensor1-idx1","Tensor0-idx0"]')]
    assert found(rule, ADD, operation(inputLabeledDs=refs(1, 0))) == wrong
    wrong = [(place, "operands [0, 1] in order", '["Tensor0-idx0"]')]
    assert found(rule, SUM, operation(inputLabeledDs=refs(0))) == wrong
    wrong = [("computeOp_[0].outputLabeledDs", "the last operand, 2", '["Tensor1-idx1"]')]
    assert found(rule, ADD, operation(outputLabeledDs=refs(1))) == wrong


def test_functions_have_their_number_of_operands() -> None:
    wrong = [("labeledDs_", "2 operands of neg, besides indices", "3")]
    assert found(compute.function_inputs, ADD, called("neg")) == wrong
    gathered = operation(opFuncName="identity", inputLabeledDs=refs(1), indirectAccessIndexLabeledDs=refs(0))
    assert found(compute.function_inputs, ADD, gather("mb"), gathered) == []


def test_indices_are_the_operands_of_their_class() -> None:
    rule = compute.index_operands
    (wrong,) = found(rule, ADD, gather("mb"))
    assert wrong[:2] == ("computeOp_[0]", "operands [0] as indirectAccessIndexLabeledDs")
    assert found(rule, ADD, gather("mb"), operation(indirectAccessIndexLabeledDs=refs(0))) == []
    (wrong,) = found(rule, ADD, operation(indirectAccessIndexLabeledDs=refs(0)))
    assert wrong[:2] == ("computeOp_[0]", "operands [] as indirectAccessIndexLabeledDs")


@pytest.mark.parametrize(
    ("function", "name", "expected"),
    [
        ("clip", "BFLOAT16", "SEN169_FP16 or IEEE_FP32 for clip"),
        ("clip", "IEEE_FP32", None),
        ("log", "IEEE_FP32", "SEN169_FP16 for log"),
        ("addi32toi32", "IEEE_FP32", "IEEE_INT32 for addi32toi32"),
        ("addi32toi32", "IEEE_INT32", None),
        ("dl16tofp32", "BFLOAT16", None),  # a conversion has another format on each side
        ("batchmatmulfp8", "BFLOAT16", None),  # the page says FP8 to DL16: an operand may have either
        ("gather", "BFLOAT16", None),
    ],
)
def test_operands_have_a_format_of_the_function(function: str, name: str, expected: str | None) -> None:
    changes = called(function), kind(0, name), kind(1, name)
    wrong = found(compute.function_formats, CLIP, *changes)
    assert wrong == ([(f"labeledDs_[{n}].dataFormat_", expected, f'"{name}"') for n in (0, 1)] if expected else [])


def test_indices_have_a_format_of_their_own() -> None:
    assert found(compute.function_formats, ADD, gather("mb")) == []


@pytest.mark.parametrize(
    ("function", "operand", "operation_format", "expected"),
    [
        ("clip", "SEN169_FP16", "IEEE_FP32", "SEN169_FP16"),
        ("clip", "IEEE_FP32", "IEEE_FP32", None),
        ("int32tofp32", "IEEE_INT32", "IEEE_INT32", "IEEE_FP32"),
        ("int32tofp32", "IEEE_INT32", "IEEE_FP32", None),
        ("fp32toint32", "SEN169_FP16", "SEN169_FP16", "IEEE_FP32"),
    ],
)
def test_the_operation_has_the_format_of_its_first_operand(
    function: str, operand: str, operation_format: str, expected: str | None
) -> None:
    wrong = found(compute.operation_format, CLIP, called(function), kind(0, operand), op_kind(operation_format))
    assert wrong == ([(FORMAT, expected, f'"{operation_format}"')] if expected else [])


def test_formats_of_indices_are_not_the_operations() -> None:
    assert found(compute.operation_format, ADD, gather("mb")) == []

    def nothing_else(f: Opened) -> None:
        f.dsc["labeledDs_"], f.dsc["scheduleTree_"] = [f.operand(0)], [f.node(0)]

    assert found(compute.operation_format, ADD, gather("mb"), nothing_else) == []


def test_names_say_where_a_reduction_keeps_the_stick() -> None:
    assert found(compute.nonstick, SUM, called("sumnonstick")) == [(FUNCTION, "sum", '"sumnonstick"')]
    assert found(compute.nonstick, SUM_ROWS, called("sum")) == [(FUNCTION, "sumnonstick", '"sum"')]
    assert found(compute.nonstick, SUM_ROWS, called("exx2")) == []  # no such suffix on the page
    assert found(compute.nonstick, SUM, called("addnonstick")) == []


def test_reductions_lose_a_dim_and_others_none() -> None:
    rule = compute.result_dims
    wrong = [("labeledDs_[1].scale_", "a dim that is summed over", "[1,1]")]
    assert found(rule, SUM, scale(1, 1, 1)) == wrong
    assert found(rule, SUM, scale(1, -1, 1)) == []
    assert found(rule, BIAS, scale(2, -1, 1)) == [("labeledDs_[2].scale_", "a result with dim mb", "[-1,1]")]
    assert found(rule, BIAS, scale(2, -1, -1)) == [("labeledDs_[2].scale_", "a result with dim mb", "[-1,-1]")]
    assert found(rule, BIAS, scale(2, 1, -2)) == []  # the stick dim of a result with one lane
    one_row = put(lambda f: f.dsc["N_"], "mb_", 1)
    assert found(rule, BIAS, scale(2, -1, 1), one_row) == []
    assert found(rule, BIAS, scale(2, -1, 1), put(lambda f: f.dsc["N_"], "mb_", 2)) != []


@pytest.mark.parametrize(
    ("function", "wrong"),
    [("identity", True), ("dl16tofp32", True), ("batchmatmul", False), ("topkvalue", False), ("gather", False)],
)
def test_copies_and_conversions_lose_no_dim(function: str, wrong: bool) -> None:
    assert bool(found(compute.result_dims, BIAS, called(function), scale(2, -1, 1))) == wrong


def stick(name: str, dim: str) -> Change:
    return put(lambda f: f.dsc["primaryDsInfo_"][name], "stickDimOrder_", [dim])


def test_a_restickify_changes_the_stick() -> None:
    wrong = [("primaryDsInfo_.KERNEL.stickDimOrder_", "another stick dim than the input's", '["out"]')]
    assert found(compute.function_sticks, RESTICK, stick("KERNEL", "out")) == wrong


@pytest.mark.parametrize(
    ("changes", "places"),
    [
        ([stick("INPUT", "mb")], ["INPUT"]),
        ([stick("INPUT", "out")], ["INPUT"]),
        ([stick("INPUT", "q")], ["INPUT"]),
        ([stick("KERNEL", "in")], ["KERNEL"]),
        ([stick("KERNEL", "mb")], ["KERNEL"]),
        ([stick("OUTPUT", "mb")], ["KERNEL"]),
        ([stick("KERNEL", "mb"), stick("OUTPUT", "mb")], ["KERNEL"]),
        ([stick("INPUT", "mb"), stick("KERNEL", "in")], ["INPUT", "KERNEL"]),
    ],
)
def test_a_product_sums_over_the_first_stick_and_keeps_the_second(changes: list[Change], places: list[str]) -> None:
    """[mb, in] times [in, out]: the sticks run along in, out and out."""
    expected = {"INPUT": "the dim that is summed over", "KERNEL": "the dim that the result gets from it"}
    wrong = found(compute.function_sticks, MATMUL, *changes)
    assert [one[:2] for one in wrong] == [(f"primaryDsInfo_.{name}.stickDimOrder_", expected[name]) for name in places]


def test_other_functions_may_have_any_sticks() -> None:
    assert found(compute.function_sticks, MATMUL, stick("INPUT", "mb"), called("batchmatmulfp8")) == []
    assert found(compute.function_sticks, ADD, called("batchmatmulfp8")) == []
    one_less = (lambda f: f.dsc["labeledDs_"].pop(), lambda f: f.dsc["scheduleTree_"].pop())
    assert found(compute.function_sticks, MATMUL, stick("INPUT", "mb"), *one_less) == []


def constant(number: int, **members: object) -> Change:
    return update(lambda f: f.dsc["constantInfo_"][str(number)], **members)


def word(value: object) -> Change:
    return put(lambda f: f.dsc["constantInfo_"]["0"]["data_"]["data_"], "[0, 0, 0]", [value])


def test_functions_have_their_constants_in_order() -> None:
    rule = compute.function_constants
    wanted = "constants ['clipMin', 'clipMax'] of clip"
    wrong = [("constantInfo_", wanted, "['clipMax', 'clipMax']")]
    assert found(rule, CLIP, constant(0, name_="clipMax")) == wrong
    assert found(rule, CLIP, called("fnms")) == []  # its meaning is not settled
    wrong = [("constantInfo_", "constants ['samv-maskvalue'] of sum", "['mask']")]
    assert found(rule, PADDED, constant(0, name_="mask")) == wrong


def test_the_mask_is_the_last_constant() -> None:
    wrong = [("maskingConstId_", "0, the mask's number", "1")]
    assert found(compute.function_constants, PADDED, put(lambda f: f.dsc, "maskingConstId_", 1)) == wrong
    assert found(compute.function_constants, PADDED, put(lambda f: f.dsc, "maskingConstId_", -1)) == [
        ("constantInfo_", "constants [] of sum", "['samv-maskvalue']")
    ]


PLACE = "constantInfo_.0.data_.data_.[0, 0, 0][0]"


@pytest.mark.parametrize(("value", "wrong"), [(0, False), (65535, False), (65536, True), (-1, True), ("65535", False)])
def test_constants_are_words_of_their_format(value: object, wrong: bool) -> None:
    assert found(compute.constant_word, CLIP, word(value)) == (
        [(PLACE, "a word of 16 bits", str(value))] if wrong else []
    )


def test_constants_have_a_known_format_and_numbers_from_0() -> None:
    assert found(compute.constant_word, CLIP, constant(0, dataFormat_="IEEE_FP32"), word(1 << 31)) == []
    ((place, expected, got),) = found(compute.constant_word, CLIP, constant(0, dataFormat_="FP7"))
    assert (place, got) == ("constantInfo_.0.dataFormat_", '"FP7"')
    assert expected.startswith("one of SEN169_FP16, IEEE_FP32, ")

    def renumber(f: Opened) -> None:
        f.dsc["constantInfo_"] = {"1": f.dsc["constantInfo_"]["1"], "2": f.dsc["constantInfo_"]["0"]}

    wrong = found(compute.constant_word, CLIP, renumber)
    assert wrong == [("constantInfo_.1", "number 0", "1"), ("constantInfo_.2", "number 1", "2")]


def test_constants_have_the_operations_format() -> None:
    wrong = found(compute.constant_format, CLIP, constant(1, dataFormat_="IEEE_FP32"))
    assert wrong == [("constantInfo_.1.dataFormat_", "SEN169_FP16", '"IEEE_FP32"')]


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("sum", [0]),
        ("max", [0xDE00, 0xFFFE]),
        ("maxnonstick", [0xDE00, 0xFFFE]),
        ("min", [0x5E00, 0x7FFE]),
        ("exp", [0xD871]),
    ],
)
def test_masks_leave_the_result_alone(function: str, words: list[int]) -> None:
    """In DL16: 65536, which the largest half rounds to, the largest number 8573157376, and -10000 before exp."""
    for value in words:
        assert found(compute.mask_word, PADDED, called(function), word(value)) == []
    wrong = [(PLACE, " or ".join(map(str, words)), "1")]
    assert found(compute.mask_word, PADDED, called(function), word(1)) == wrong
    assert found(compute.mask_word, PADDED, called(function), word(1), constant(0, dataFormat_="IEEE_FP32")) == []
    assert found(compute.mask_word, CLIP, called(function), word(1)) == []
