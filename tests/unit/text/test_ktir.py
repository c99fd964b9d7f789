"""KTIR in its narrower form: lists of numbers without types, memory spaces in either spelling, plain names."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, ModuleOp, StringAttr, i32, i64
from xdsl.ir import Attribute

from spyre_mlir.dialects.ktdp.attributes import memory_space
from spyre_mlir.text.ktir import ktir_text
from spyre_mlir.text.render import parse_module
from spyre_mlir.universe import make_context


def numbers(*values: int) -> list[Attribute]:
    return [IntegerAttr(value, i64) for value in values]


@pytest.mark.parametrize(
    ("attribute", "text"),
    [
        (ArrayAttr(numbers(8, 4)), "[8, 4]"),
        (ArrayAttr(numbers(-1)), "[-1]"),
        (ArrayAttr([]), "[]"),
        (ArrayAttr([IntegerAttr(8, i32)]), "[8 : i32]"),
        (ArrayAttr([*numbers(8), IntegerAttr(4, i32)]), "[8 : i64, 4 : i32]"),
        (ArrayAttr([*numbers(8), StringAttr("x")]), '[8 : i64, "x"]'),
        (ArrayAttr([ArrayAttr(numbers(1)), ArrayAttr(numbers(2, 3))]), "[[1], [2, 3]]"),
        (IntegerAttr(8, i32), "8 : i32"),
    ],
)
def test_a_list_of_64_bit_numbers_is_printed_without_types(attribute: Attribute, text: str) -> None:
    assert ktir_text(ModuleOp([], {"a": attribute})) == f"builtin.module attributes {{a = {text}}} {{\n}}\n"


@pytest.mark.parametrize("written_older", [False, True])
@pytest.mark.parametrize(
    ("kind", "core", "newer", "older"),
    [
        ("global", None, "#ktdp.memory_space<global>", "#ktdp.spyre_memory_space<HBM>"),
        ("ct_local", None, "#ktdp.memory_space<ct_local>", "#ktdp.spyre_memory_space<LX>"),
        ("ct_local", 3, "#ktdp.memory_space<ct_local, ct_id = 3>", "#ktdp.spyre_memory_space<LX, core = 3>"),
    ],
)
def test_memory_spaces_are_printed_in_the_spelling_chosen(
    kind: str, core: int | None, newer: str, older: str, written_older: bool
) -> None:
    module = ModuleOp([], {"a": memory_space(kind, core, older=written_older)})
    assert ktir_text(module) == f"builtin.module attributes {{a = {newer}}} {{\n}}\n"
    assert ktir_text(module, older_spaces=True) == f"builtin.module attributes {{a = {older}}} {{\n}}\n"


PROGRAM = """\
builtin.module {
  func.func @f(%plain_x : index, %a.b : index) {
    %c-d = arith.addi %plain_x, %a.b : index
    %sum = arith.addi %c-d, %plain_x : index
    func.return
  }
}
"""


def test_names_with_other_signs_are_dropped_and_plain_ones_kept() -> None:
    module = parse_module(PROGRAM, make_context())
    text = ktir_text(module)
    assert "a.b" not in text
    assert "c-d" not in text
    for name in ("%plain_x", "%sum"):
        assert name in text
    function = next(iter(module.ops))
    hints = [argument.name_hint for region in function.regions for argument in region.block.args]
    assert hints == ["plain_x", None]
    assert [op.results[0].name_hint for op in function.walk() if op.name == "arith.addi"] == [None, "sum"]


def test_the_text_ends_with_one_newline() -> None:
    assert ktir_text(ModuleOp([])) == "builtin.module {\n}\n"
