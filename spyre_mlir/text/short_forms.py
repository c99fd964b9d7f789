"""Forms of upstream ops that MLIR reads and xDSL's parser does not; they are printed in the long form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from typing_extensions import override
from xdsl.dialects import scf
from xdsl.dialects.builtin import DenseArrayBase, IndexType, TensorType, i64
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.traits import SingleBlockImplicitTerminator, ensure_terminator
from xdsl.utils.hints import isa


class ForForm(scf.ForOp):
    """`scf.for` whose one carried type may stand without parentheses: `iter_args(%a = %b) -> tensor<4xf32>`."""

    @classmethod
    @override
    def create(cls, **fields: Any) -> Self:
        return scf.ForOp.create(**fields)  # pyright: ignore[reportReturnType] - a form makes the op it is of

    @classmethod
    @override
    def parse(cls, parser: Parser) -> Self:
        counter = parser.parse_argument(expect_type=False)
        parser.parse_punctuation("=")
        bounds = [parser.parse_unresolved_operand()]
        for word in ("to", "step"):
            parser.parse_keyword(word)
            bounds.append(parser.parse_unresolved_operand())
        position, names, starts, types = parser.pos, list[Parser.UnresolvedArgument](), list[UnresolvedOperand](), []
        if parser.parse_optional_keyword("iter_args"):
            for name, start in parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: _assigned(parser)):
                names.append(name)
                starts.append(start)
            parser.parse_punctuation("->")
            types = _result_types(parser)
        carried = parser.resolve_operands(starts, types, position)
        kind = parser.parse_type() if parser.parse_optional_punctuation(":") else IndexType()
        low, high, step = (parser.resolve_operand(one, kind) for one in bounds)
        arguments = [counter.resolve(kind), *(name.resolve(type_) for name, type_ in zip(names, types, strict=True))]
        body = parser.parse_region(arguments)
        made = scf.ForOp(low, high, step, carried, body)
        made.attributes |= parser.parse_optional_attr_dict()
        for trait in made.get_traits_of_type(SingleBlockImplicitTerminator):
            ensure_terminator(made, trait)
        return made  # pyright: ignore[reportReturnType]


def _assigned(parser: Parser) -> tuple[Parser.UnresolvedArgument, UnresolvedOperand]:
    name = parser.parse_argument(expect_type=False)
    parser.parse_punctuation("=")
    return name, parser.parse_unresolved_operand()


def _result_types(parser: Parser) -> list[Attribute]:
    """Types in parentheses, or one without."""
    several = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
    return [parser.parse_type()] if several is None else list(several)


class ReduceForm(linalg.ReduceOp):
    """`linalg.reduce { arith.addf } ins(...) outs(...) dimensions = [...]`: the combiner by its name."""

    @classmethod
    @override
    def create(cls, **fields: Any) -> Self:
        return linalg.ReduceOp.create(**fields)  # pyright: ignore[reportReturnType]

    @classmethod
    @override
    def parse(cls, parser: Parser) -> Self:
        if parser.parse_optional_punctuation("{") is None:
            return linalg.ReduceOp.parse(parser)  # pyright: ignore[reportReturnType]
        name = parser.parse_identifier()
        combiner = parser.ctx.get_optional_op(name)
        if combiner is None or not issubclass(combiner, IRDLOperation):
            parser.raise_error(f"a reduction combines with an operation, and {name} is not registered")
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation("}")
        source, into = (_typed(parser, word) for word in ("ins", "outs"))
        parser.parse_keyword("dimensions")
        parser.parse_punctuation("=")
        dimensions = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
        if not isa(into.type, TensorType[Attribute]):
            parser.raise_error(f"a reduction of tensors, got {into.type}")
        element = into.type.get_element_type()
        block = Block(arg_types=[element, element])
        # As MLIR builds it: what is there first, then the element.
        both = combiner.build(operands=[block.args[1], block.args[0]], attributes=attributes, result_types=[element])
        block.add_ops([both, linalg.YieldOp(both.results[0])])
        places = DenseArrayBase.from_list(i64, dimensions)
        return linalg.ReduceOp(source, into, places, Region(block))  # pyright: ignore[reportReturnType]


def _typed(parser: Parser, word: str) -> SSAValue:
    """`word(%value : type)`."""
    parser.parse_keyword(word)
    parser.parse_punctuation("(")
    value = parser.parse_unresolved_operand()
    parser.parse_punctuation(":")
    found = parser.resolve_operand(value, parser.parse_type())
    parser.parse_punctuation(")")
    return found


# What reads the assembly of an op, where that is not the op itself.
SHORT_FORMS: Mapping[type[Operation], type[Operation]] = {scf.ForOp: ForForm, linalg.ReduceOp: ReduceForm}

__all__ = ["SHORT_FORMS"]
