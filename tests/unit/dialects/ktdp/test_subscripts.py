"""Subscripts of indirect tiles: affine expressions of variables and of SSA values, from text."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import IndexType
from xdsl.dialects.test import TestOp
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineExpr, AffineMap
from xdsl.utils.exceptions import ParseError

from spyre_mlir.dialects.ktdp.subscripts import Names, Subscript, parse_expr, parse_subscript
from tests.unit.dialects.texts import parser_of

D0, D1, S0, S1 = (
    AffineExpr.dimension(0),
    AffineExpr.dimension(1),
    AffineExpr.symbol(0),
    AffineExpr.symbol(1),
)
X, Y = TestOp(result_types=[IndexType()] * 2).results


def expr(text: str) -> tuple[AffineExpr, list[SSAValue]]:
    names = Names(["i", "j"])
    return parse_expr(parser_of(f"{text} ]", x=X, y=Y), names), names.captured


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("%i", D0),
        ("%j", D1),
        ("7", AffineExpr.constant(7)),
        ("%i + %j - 3", D0 + D1 - 3),
        ("%i - %j - %j", D0 - D1 - D1),
        ("%i - (%j - %j)", D0 - (D1 - D1)),
        ("%i + %j * 4", D0 + D1 * 4),
        ("(%i + %j) * 4", (D0 + D1) * 4),
        ("-%i + 3", -D0 + 3),
        ("- (%i + 1)", -(D0 + 1)),
        ("%i floordiv 4", D0 // 4),
        ("%i mod 4 floordiv 2", (D0 % 4) // 2),
        ("%i ceildiv 4", AffineBinaryOpExpr(AffineBinaryOpKind.CeilDiv, D0, AffineExpr.constant(4))),
    ],
)
def test_expressions_of_variables(text: str, wanted: AffineExpr) -> None:
    assert expr(text) == (wanted, [])


def test_values_are_symbols_in_the_order_of_their_first_use() -> None:
    assert expr("%y + %i + %x + %y") == (S0 + D0 + S1 + S0, [Y, X])


@pytest.mark.parametrize("text", ["%i +", "* 3", "(%i", "true", "%i floordiv"])
def test_text_that_is_no_expression(text: str) -> None:
    with pytest.raises(ParseError):
        parse_expr(parser_of(text), Names(["i"]))


def test_direct_and_indirect_subscripts() -> None:
    names = Names(["i", "j"])
    direct = parse_subscript(parser_of("(%j * 2) ]"), names)
    assert direct == Subscript((D1 * 2,))
    indirect = parse_subscript(parser_of("ind(%v[%i + %x, %j]) ]", x=X), names)
    assert indirect.exprs == (D0 + S0, D1)
    assert indirect.view is not None and indirect.view.operand_name == "v"
    assert names.captured == [X]
    assert direct.map(names) == AffineMap(2, 1, (D1 * 2,))
    assert hash(direct) == hash(Subscript((D1 * 2,)))


@pytest.mark.parametrize("text", ["%i", "(%i", "ind %v[%i]", "ind(%v)", "ind(%v[%i]"])
def test_text_that_is_no_subscript(text: str) -> None:
    with pytest.raises(ParseError):
        parse_subscript(parser_of(text), Names(["i"]))
