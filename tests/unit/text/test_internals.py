"""Private names of xDSL: all in one module, counted, and each shown to do what we take it for."""

import ast
import math
from pathlib import Path

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import (
    ArrayAttr,
    Builtin,
    BytesAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    StringAttr,
    f32,
)
from xdsl.dialects.test import Test
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError, VerifyException
from xdsl.utils.lexer import Input
from xdsl.utils.mlir_lexer import MLIRLexer

from spyre_mlir.text import SpyreParser, SpyrePrinter
from spyre_mlir.text.internals import PRIVATE_NAMES, InternalsParser, InternalsPrinter, LinearLexer
from tests.paths import ROOT

PACKAGE = ROOT / "spyre_mlir"


def assigned(definition: ast.ClassDef) -> list[ast.Name]:
    """What a class assigns in its body."""
    targets = [t for s in definition.body if isinstance(s, ast.Assign) for t in s.targets]
    return [t for t in targets if isinstance(t, ast.Name)]


def private_attributes(path: Path) -> set[str]:
    """Names with one leading underscore that a file uses on something other than its own definitions."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    defined |= {t.id for c in ast.walk(tree) if isinstance(c, ast.ClassDef) for t in assigned(c)}
    return {name for name in used | defined if name.startswith("_") and not name.startswith("__")}


def context() -> Context:
    context = Context()
    context.load_dialect(Builtin)
    context.load_dialect(Test)
    return context


def test_list_is_complete():
    used = private_attributes(PACKAGE / "text" / "internals.py")
    assert used == {name.split(".")[1] for name in PRIVATE_NAMES}
    assert len(PRIVATE_NAMES) == 14


def test_no_other_text_or_cli_module_uses_private_names_of_xdsl():
    names = {name for base in (Parser, Printer) for name in dir(base) if name.startswith("_") and name[1] != "_"}
    for room in ("text", "cli"):
        for path in (PACKAGE / room).glob("*.py"):
            if path.name != "internals.py":
                assert not private_attributes(path) & names, path


def test_tensor_literal_element():
    assert hasattr(Parser, "_TensorLiteralElement")
    attribute = SpyreParser(context(), "dense<0x7f800000> : tensor<1xf32>").parse_attribute()
    assert isinstance(attribute, DenseIntOrFPElementsAttr)
    assert attribute.get_values() == (math.inf,)


def test_parse_tensor_literal_element():
    assert Parser(context(), "-1.5")._parse_tensor_literal_element().value == -1.5


def test_parse_tensor_literal():
    values, shape = Parser(context(), "[[1, 2.5], [-3, 4.]]")._parse_tensor_literal()
    assert ([one.value for one in values], shape) == ([1, 2.5, -3, 4.0], [2, 2])


LISTS = [
    "dense<[1, -2, 3]> : tensor<3xi8>",
    "dense<[1,0,\n 1 ]> : tensor<3xi1>",
    "dense<[1, -2.5, 3e4, 1.5e-3, -0.0, 7.]> : tensor<6xf32>",
    "dense<[[1, 2], [3, 4]]> : tensor<2x2xindex>",
    "dense<[[[1.0], [2]]]> : tensor<1x2x1xbf16>",
    "dense<[1, 0x2, 3]> : tensor<3xi32>",
    "dense<[1, // one\n 2]> : tensor<2xi32>",
    "dense<[true, false]> : tensor<2xi1>",
    "dense<[(1, 2), (3, 4)]> : tensor<2xcomplex<i32>>",
    "dense<[-1, 0, 1]> : tensor<3xui8>",
    "dense<[-0, 0, 1]> : tensor<3xui8>",
    "dense<[1.5]> : tensor<1xi32>",
    "dense<[300]> : tensor<1xi8>",
    "dense<[1, 2]> : tensor<2xcomplex<i32>>",
    "dense<[1, 2,]> : tensor<2xi32>",
    "dense<[1 2]> : tensor<2xi32>",
    "dense<[1, [2]]> : tensor<2xi32>",
    "dense<[1, 2] : tensor<2xi32>",
    "dense<[12x3]> : tensor<1xi32>",
    "dense<[1.e]> : tensor<1xf32>",
    "dense<[]> : tensor<0xi32>",
    "[1, -2, 3]",
    "[1, 1 : i8, 1, 1.5, 1e5, true]",
    "[1, 0x1F, [1,1], -1]",
    "[1,, 1]",
    "[- 1, 1]",
]


@pytest.mark.parametrize("text", LISTS)
def test_lists_of_numbers_are_read_as_xdsl_reads_them(text: str):
    """Lists are read at once; what they mean, and what is refused, is xDSL's own parser's to say."""

    def read(parser: type[Parser]) -> object:
        try:
            return parser(context(), text).parse_attribute()
        except (ParseError, VerifyException, AssertionError, ValueError) as error:
            return type(error)

    assert read(SpyreParser) == read(Parser)


@pytest.mark.parametrize("number", ["0", "1", "-7"])
def test_equal_numbers_of_a_list_are_one_attribute(number: str):
    attribute = SpyreParser(context(), f"[{number},{number},{number}]").parse_attribute()
    assert isinstance(attribute, ArrayAttr)
    assert len({id(one) for one in attribute.data}) == 1


def test_a_list_of_numbers_takes_few_tokens(monkeypatch: pytest.MonkeyPatch):
    lex, count = LinearLexer.lex, [0]

    def counted(self: LinearLexer) -> object:
        count[0] += 1
        return lex(self)

    monkeypatch.setattr(LinearLexer, "lex", counted)
    many = ", ".join(["1"] * 1000)
    SpyreParser(context(), f"dense<[{many}]> : tensor<1000xi32>").parse_attribute()
    assert count[0] <= 30


def test_parse_builtin_densearray_attr():
    parsed = SpyreParser(context(), "array<f32: 0x7f800000>").parse_attribute()
    assert parsed == DenseArrayBase.from_list(f32, [math.inf])


def test_parse_optional_string_attr():
    assert SpyreParser(context(), '"\\CE\\B1"').parse_attribute() == StringAttr("α")
    assert SpyreParser(context(), '"\\FF"').parse_attribute() == BytesAttr(b"\xff")


def test_get_op_by_name():
    with pytest.raises(ParseError, match=r"did you mean 'test\.op'"):
        SpyreParser(context(), '"test.opp"() : () -> ()').parse_operation()


def test_parse_block():
    with pytest.raises(
        ParseError, match=r"expected an operation, a block such as \^bb0, or the '}' that ends the region"
    ):
        SpyreParser(context(), '"test.op"() ({ "test.op"() : () -> ()').parse_operation()


def test_parser_state():
    assert SpyreParser(context(), "x")._parser_state.dialect_stack == ["builtin"]


def test_current_token():
    assert InternalsParser(context(), "  f32").token_start == 2


def test_resume_from():
    parser = InternalsParser(context(), "f32 f16")
    parser.parse_type()
    parser.resume_at(0)
    assert parser.parse_type() == f32


def test_current_column():
    printer = InternalsPrinter()
    printer.advance_column(3)
    printer.advance_column(2)
    assert printer._current_column == 5
    assert issubclass(SpyrePrinter, InternalsPrinter)


@pytest.mark.parametrize(("text", "value"), [("0x7C00", math.inf), ("0xFF80", -math.inf), ("0xFF800000", -math.inf)])
def test_bits_without_a_type(text: str, value: float):
    assert InternalsParser(context(), text).parse_float() == value


def test_ambiguous_bits_without_a_type():
    with pytest.raises(ParseError, match="mean different floats"):
        InternalsParser(context(), "0x3C00").parse_float()


def test_strings_are_read_without_going_back():
    """Every spelling of a string is the same token as xDSL's lexer makes of it."""
    for text in ('""', '"a b"', r'"\n\t\\\""', r'"\0a\FF"', '"é"', '"a"b"', '@"a b"'):
        ours, theirs = LinearLexer(Input(text, "t")).lex(), MLIRLexer(Input(text, "t")).lex()
        assert (ours.kind, ours.span.text) == (theirs.kind, theirs.span.text)
    for text in ('"a', r'"\x"', '"a\nb"', '"\\'):
        for lexer in (LinearLexer, MLIRLexer):
            with pytest.raises(ParseError, match="before closing string literal"):
                lexer(Input(text, "t")).lex()


def test_names_in_an_affine_space():
    text = "affine_map<(d0, x, d0)[s0] -> (x + s0, d0)>"
    assert SpyreParser(context(), text).parse_attribute() == Parser(context(), text).parse_attribute()
    with pytest.raises(ParseError, match="Identifier not in space d1"):
        SpyreParser(context(), "affine_map<(d0) -> (d1)>").parse_attribute()


@pytest.mark.parametrize(
    "text",
    ["tensor<2x?x3xf32>", "tensor<f32>", "tensor<0x4xi1>", "tensor<2 x 3 xf32>", "tensor<2x 3x?xi8>", "memref<2x?xf32>",
     "vector<4x[4]xf32>", "tensor<*xf32>", "memref<1xi1, strided<[1], offset: ?>>", "tensor<12x!test.type<\"x\">>"],
)  # fmt: skip
def test_dimensions(text):
    ours, theirs = (p(context(), text).parse_type() for p in (SpyreParser, Parser))
    assert ours == theirs
