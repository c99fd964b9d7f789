"""Pieces of the assembly of KTIR: dictionaries, short types, operands in brackets."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import AffineMapAttr, AffineSetAttr, IndexType, IntegerAttr, StringAttr, UnitAttr, f16, i64
from xdsl.dialects.test import TestOp
from xdsl.ir import Attribute
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.utils.exceptions import ParseError

from spyre_mlir.dialects.ktdp.affine import box_set, order_map
from spyre_mlir.dialects.ktdp.attributes import AccessTileType, MemorySpace, memory_space
from spyre_mlir.dialects.ktdp.syntax import (
    normal,
    parse_dictionary,
    parse_index_operands,
    parse_tile_type,
    print_dictionary,
    print_types,
    print_value,
    print_values,
    resolve_indices,
)
from tests.unit.dialects.texts import parser_of, printed

KNOWN = {"set": AffineSetAttr, "order": AffineMapAttr, "space": MemorySpace}
BOX = "affine_set<(d0) : (d0 >= 0, -d0 + 3 >= 0)>"
ORDER = "affine_map<(d0, d1) -> (d1, d0)>"
X, Y = TestOp(result_types=[IndexType()] * 2).results


def test_a_dictionary_is_sorted_into_known_names_and_others() -> None:
    text = f"{{set = affine_set<(i) : (0 <= i, 3 >= i)>, note, space = #ktdp.memory_space<global>, order = {ORDER}}}"
    properties, others = parse_dictionary(parser_of(text), KNOWN)
    assert properties["order"] == order_map([1, 0])
    assert properties["space"] == memory_space("global")
    assert (
        printed(lambda printer: print_value(printer, properties["set"]))
        == "affine_set<(d0) : (-d0 <= 0, -d0 + 3 >= 0)>"
    )
    assert list(properties) == ["set", "space", "order"]
    assert others == {"note": UnitAttr()}


def test_known_names_may_be_optional() -> None:
    assert parse_dictionary(parser_of(": f16"), {"set": AffineSetAttr}, optional=["set"]) == ({}, {})
    with pytest.raises(ParseError, match="expected order among the attributes"):
        parse_dictionary(
            parser_of(f"{{set = {BOX}}}"), {"set": AffineSetAttr, "order": AffineMapAttr}, optional=["set"]
        )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{{set = {ORDER}}}", r"set: expected affine_set, got affine_map"),
        ("{space = 3 : i64}", "space: expected a memory space of this dialect, got 3 : i64"),
    ],
)
def test_a_known_name_has_a_value_of_its_class(text: str, said: str) -> None:
    with pytest.raises(ParseError, match=said):
        parse_dictionary(parser_of(text), KNOWN)


def test_affine_attributes_have_one_order() -> None:
    d0, d1 = AffineExpr.dimension(0), AffineExpr.dimension(1)
    assert normal(AffineMapAttr(AffineMap(2, 0, (d1 + d0,)))) == AffineMapAttr(AffineMap(2, 0, (d0 + d1,)))
    assert normal(box_set([4])) == box_set([4])
    assert normal(UnitAttr()) == UnitAttr()


@pytest.mark.parametrize(
    ("attributes", "text"),
    [
        ({}, ""),
        ({"set": None}, ""),
        ({"note": UnitAttr(), "skip": None, "a b": IntegerAttr(3, i64)}, ' {note, "a b" = 3 : i64}'),
        ({"set": box_set([4]), "order": order_map([1, 0])}, f" {{set = {BOX}, order = {ORDER}}}"),
        ({"name": StringAttr("x")}, ' {name = "x"}'),
    ],
)
def test_text_of_dictionaries(attributes: dict[str, Attribute | None], text: str) -> None:
    assert printed(lambda printer: print_dictionary(printer, attributes)) == text


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("<4x64xindex>", AccessTileType([4, 64])),
        ("!ktdp.access_tile<4xindex>", AccessTileType([4])),
        ("f16", f16),
    ],
)
def test_short_types_of_tiles(text: str, type_: Attribute) -> None:
    parser = parser_of(f"{text} -> f16")
    assert parse_tile_type(parser) == type_
    parser.parse_punctuation("->")


def test_operands_that_are_indices() -> None:
    assert parse_index_operands(parser_of("[%i, %j, %i]", i=X, j=Y)) == [X, Y, X]
    parser = parser_of("%j", j=Y)
    assert resolve_indices(parser, [parser.parse_unresolved_operand()]) == [Y]
    with pytest.raises(ParseError):
        parse_index_operands(parser_of("[%x]", x=TestOp(result_types=[f16]).results[0]))


def test_lists_of_values_and_types() -> None:
    assert printed(lambda printer: print_values(printer, [X, Y])) == "[%0, %1]"
    assert printed(lambda printer: print_types(printer, [f16, IndexType()])) == "f16, index"
