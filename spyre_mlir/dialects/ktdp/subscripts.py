"""Subscripts of indirect tiles as text: affine expressions of intermediate variables and of SSA values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import IndexType
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.parser import Parser, UnresolvedOperand


@dataclass
class Names:
    """Names available in the subscripts of one op.

    Args:
        variables: intermediate variables; number n is dimension n.
        captured: SSA values used so far; number n is symbol n.
    """

    variables: Sequence[str]
    captured: list[SSAValue] = field(default_factory=list[SSAValue])

    def expr(self, parser: Parser, operand: UnresolvedOperand) -> AffineExpr:
        """Return the dimension or the symbol of a name."""
        if operand.operand_name in self.variables:
            return AffineExpr.dimension(self.variables.index(operand.operand_name))
        value = parser.resolve_operand(operand, IndexType())
        if value not in self.captured:
            self.captured.append(value)
        return AffineExpr.symbol(self.captured.index(value))


@dataclass(frozen=True)
class Subscript:
    """The subscript of one dimension of a view.

    Args:
        exprs: the index itself, or where it stands in an index view.
        view: name of the index view, None when direct.
    """

    exprs: tuple[AffineExpr, ...]
    view: UnresolvedOperand | None = None

    def map(self, names: Names) -> AffineMap:
        """The expressions over all variables and all captured values."""
        return AffineMap(len(names.variables), len(names.captured), self.exprs)


def parse_subscript(parser: Parser, names: Names) -> Subscript:
    """`(expr)`, or `ind(%view[expr, ...])`."""
    if parser.parse_optional_keyword("ind") is None:
        parser.parse_punctuation("(")
        expr = parse_expr(parser, names)
        parser.parse_punctuation(")")
        return Subscript((expr,))
    parser.parse_punctuation("(")
    view = parser.parse_unresolved_operand()
    exprs = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_expr(parser, names))
    parser.parse_punctuation(")")
    return Subscript(tuple(exprs), view)


def parse_expr(parser: Parser, names: Names) -> AffineExpr:
    """A sum."""
    total = _parse_product(parser, names)
    while True:
        if parser.parse_optional_punctuation("+") is not None:
            total = total + _parse_product(parser, names)
        elif parser.parse_optional_punctuation("-") is not None:
            total = total - _parse_product(parser, names)
        else:
            return total


def _parse_product(parser: Parser, names: Names) -> AffineExpr:
    total = _parse_atom(parser, names)
    while True:
        if parser.parse_optional_punctuation("*") is not None:
            total = total * _parse_atom(parser, names)
        elif parser.parse_optional_keyword("floordiv") is not None:
            total = total // _parse_atom(parser, names)
        elif parser.parse_optional_keyword("ceildiv") is not None:
            total = total.ceil_div(_parse_atom(parser, names))
        elif parser.parse_optional_keyword("mod") is not None:
            total = total % _parse_atom(parser, names)
        else:
            return total


def _parse_atom(parser: Parser, names: Names) -> AffineExpr:
    if parser.parse_optional_punctuation("(") is not None:
        inner = parse_expr(parser, names)
        parser.parse_punctuation(")")
        return inner
    if parser.parse_optional_punctuation("-") is not None:
        return -_parse_atom(parser, names)
    operand = parser.parse_optional_unresolved_operand()
    if operand is not None:
        return names.expr(parser, operand)
    return AffineExpr.constant(parser.parse_integer(allow_boolean=False, allow_negative=False))
