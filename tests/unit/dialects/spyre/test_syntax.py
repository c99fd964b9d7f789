"""Pieces of syntax of loops and kernels: spaces, maps, and operands that are read at a map."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import TensorType, UnitAttr, f32
from xdsl.dialects.test import TestOp
from xdsl.utils.exceptions import ParseError

from spyre_mlir.dialects.spyre.attributes import IndexMapAttr, IterDim, SpaceAttr
from spyre_mlir.dialects.spyre.syntax import (
    parse_map,
    parse_reading,
    parse_readings,
    parse_space,
    print_extra,
    print_map,
    print_reading,
    print_readings,
    print_space,
)
from spyre_mlir.hw.sticks import LinearExpr
from tests.unit.dialects.texts import parser_of, printed

X, Y = TestOp(result_types=[TensorType(f32, [4]), TensorType(f32, [4, 8])]).results
M, HEADS = LinearExpr.of("m"), LinearExpr(3, (("h", 64), ("d", 1)))


@pytest.mark.parametrize(
    ("space", "text"),
    [
        (SpaceAttr((IterDim("m", 128, 32), IterDim("n", 256))), "[m = 128 over 32, n = 256]"),
        (SpaceAttr(()), "[]"),
    ],
)
def test_spaces(space: SpaceAttr, text: str) -> None:
    assert printed(lambda printer: print_space(printer, space)) == text
    assert parse_space(parser_of(text)) == space


@pytest.mark.parametrize(
    ("index", "text"), [(IndexMapAttr((M, HEADS)), "[m, h * 64 + d + 3]"), (IndexMapAttr(()), "[]")]
)
def test_maps(index: IndexMapAttr, text: str) -> None:
    assert printed(lambda printer: print_map(printer, index)) == text
    assert parse_map(parser_of(text)) == index


ONE = (X, IndexMapAttr((M,)))
TWO = (Y, IndexMapAttr((M, HEADS)))


def test_an_operand_at_a_map() -> None:
    text = "%0[m, h * 64 + d + 3] : tensor<4x8xf32>"
    assert printed(lambda printer: print_reading(printer, *TWO)) == text
    assert parse_reading(parser_of(text.replace("%0", "%y"), y=Y)) == TWO
    with pytest.raises(ParseError):
        parse_reading(parser_of("%y[m] tensor<4x8xf32>", y=Y))
    with pytest.raises(ParseError):
        parse_reading(parser_of("%y[m] : tensor<9xf32>", y=Y))


def test_operands_behind_a_word() -> None:
    text = " ins(%0[m] : tensor<4xf32>, %1[m, h * 64 + d + 3] : tensor<4x8xf32>)"
    assert printed(lambda printer: print_readings(printer, "ins", [X, Y], [ONE[1], TWO[1]])) == text
    named = text.replace("%0", "%x").replace("%1", "%y")
    assert parse_readings(parser_of(named, x=X, y=Y), "ins") == [ONE, TWO]


def test_no_operands_have_no_word() -> None:
    assert printed(lambda printer: print_readings(printer, "ins", [], [])) == ""
    parser = parser_of("outs(%x[m] : tensor<4xf32>)", x=X)
    assert parse_readings(parser, "ins") == []
    assert parse_readings(parser, "outs") == [ONE]


def test_further_attributes() -> None:
    assert printed(lambda printer: print_extra(printer, {})) == ""
    assert printed(lambda printer: print_extra(printer, {"note": UnitAttr()})) == " attributes {note}"
