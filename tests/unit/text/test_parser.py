"""Locations, suggestions and scopes of the parser."""

from io import StringIO

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, FileLineColLoc, UnknownLoc, i32
from xdsl.dialects.func import Func
from xdsl.dialects.test import Test
from xdsl.ir import Block
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError

from spyre_mlir.errors import ReadError
from spyre_mlir.text import SpyreParser, module_text, parse_module
from spyre_mlir.universe import make_context


@pytest.fixture
def context() -> Context:
    context = Context()
    for dialect in (Builtin, Func, Test):
        context.load_dialect(dialect)
    return context


def test_ops_get_their_line_and_column(context: Context):
    module = parse_module('"test.op"() : () -> ()\n\n  %0 = "test.op"() : () -> i32', context, "here.mlir")
    locations = [op.location for op in module.ops]
    assert [str(location) for location in locations] == ['loc("here.mlir":1:1)', 'loc("here.mlir":3:3)']


def test_line_offset_of_a_chunk(context: Context):
    (op,) = parse_module('"test.op"() : () -> ()', context, "here.mlir", line_offset=10).ops
    assert isinstance(op.location, FileLineColLoc)
    assert op.location.line.data == 11


def test_written_locations_are_kept(context: Context):
    text = '"test.op"() : () -> () loc("model.py":7:1)\n"test.op"() : () -> () loc(unknown)'
    first, second = parse_module(text, context).ops
    assert str(first.location) == 'loc("model.py":7:1)'
    assert isinstance(second.location, UnknownLoc)


def test_locations_can_be_left_out(context: Context):
    (op,) = parse_module('"test.op"() : () -> ()', context, locations=False).ops
    assert isinstance(op.location, UnknownLoc)


def test_debug_information_round_trips(context: Context):
    text = 'func.func @f(%a: i32 loc("m.py":1:1)) {\n  func.return\n}\n"test.op"() : () -> () loc(fused["a", "b"])'
    first = module_text(parse_module(text, context), locations=True)
    assert 'loc("m.py":1:1)' in first
    assert 'loc(fused["a", "b"])' in first
    assert module_text(parse_module(first, context), locations=True) == first


def test_unknown_dialect_is_reported_at_its_name(context: Context):
    with pytest.raises(ParseError, match="no dialect 'fund', did you mean 'func'") as caught:
        parse_module("\n  fund.return", context)
    assert (caught.value.span.get_location().line, caught.value.span.get_location().col) == (2, 3)


def test_operands_with_too_few_types_are_reported_at_their_place(context: Context):
    with pytest.raises(ParseError, match="expected 1 operand types but had 2") as caught:
        parse_module("func.func @f(%a: i32) {\n  func.return %a, %a : i32\n}", context)
    assert (caught.value.span.get_location().line, caught.value.span.get_location().col) == (2, 15)


def test_a_type_that_an_op_does_not_take_is_reported_at_the_op():
    text = "func.func @f(%a: i32) {\n  ktdp.load %a : i32 -> tensor<4xf32>\n  func.return\n}"
    with pytest.raises(ParseError, match=r"i32 should be of base attribute ktdp\.access_tile") as caught:
        parse_module(text, make_context())
    assert (caught.value.span.get_location().line, caught.value.span.get_location().col) == (2, 3)


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("func.func @f(%t: !ktdp.access_tile<4x8xf16> , %i: i1) { func.return }", (18, 44)),
        ("func.func @f(%t: tensor<4x!ktdp.access_tile<?x8xindex>>) { func.return }", (27, 55)),
        ("func.func private @f() attributes {a = [#spyre.space<m = 4, m = 5>, 1]}", (41, 67)),
    ],
)
def test_a_type_or_attribute_that_does_not_verify_is_reported_at_its_text(text: str, columns: tuple[int, int]):
    with pytest.raises(ParseError) as caught:
        parse_module(f"\n{text}\n", make_context())
    span = caught.value.span
    assert (span.get_location().line, span.get_location().col, span.end - span.start) == (
        2,
        columns[0],
        columns[1] - columns[0],
    )


def test_bytes_that_are_no_text(context: Context):
    with pytest.raises(ReadError, match=r"0xff[^\n]*\n  at: bad.mlir:2:2"):
        parse_module(b"\n \xff", context, "bad.mlir")


def test_bytes_that_are_no_text_in_a_chunk(context: Context):
    with pytest.raises(ReadError, match=r"bad\.mlir:12:2"):
        parse_module(b"\n \xff", context, "bad.mlir", line_offset=10)


def test_types_with_the_same_text_are_one_object(context: Context):
    text = '%0, %1 = "test.op"() : () -> (tensor<4x?xf32>, tensor<4x?xf32>)'
    (op,) = parse_module(text, context).ops
    first, second = op.result_types
    assert first is second
    assert "tensor<4x?xf32>, tensor<4x?xf32>" in module_text(op)


@pytest.mark.parametrize(
    "type_",
    [
        "tensor<2xf32, affine_map<(d0) -> (d0)>>",
        '!test.type<"a>b">',
        "memref<2x4xf32, strided<[4, 1], offset: 2>>",
        "tuple<tensor<1xi8>, vector<[4]xf32>>",
        "(tensor<1xi8>) -> tensor<2xi8>",
    ],
)
def test_types_that_a_pattern_could_cut_short(type_: str, context: Context):
    text = f'"test.op"() {{a = {type_}, b = {type_}}} : () -> ()'
    (op,) = parse_module(text, context).ops
    stream = StringIO()
    Printer(stream).print_op(op)
    assert stream.getvalue() == text == module_text(op)


def test_entering_a_region_copies_no_names(context: Context):
    parser = SpyreParser(context, '"test.op"() ({ %inner = "test.op"() : () -> i32 }) : () -> ()')
    outer = Block(arg_types=[i32] * 3)
    parser.ssa_values = {f"v{index}": (value,) for index, value in enumerate(outer.args)}
    scope = parser.ssa_values
    assert len(scope.copy()) == 0
    parser.parse_operation()
    assert parser.ssa_values is scope
    assert list(scope) == ["v0", "v1", "v2"]


def test_names_of_a_region_end_with_it(context: Context):
    inner = '"test.op"() ({ %x = "test.op"() : () -> i32 }) : () -> ()'
    parse_module(inner + "\n" + inner, context)
    with pytest.raises(ParseError, match="values used but not defined"):
        parse_module(inner + '\n"test.op"(%x) : (i32) -> ()', context)


def test_a_type_that_ends_too_soon_says_what_comes_next():
    with pytest.raises(ParseError, match="identifier expected: a number format"):
        parse_module("func.func private @main(!spyre.tensor<[3] x >)", make_context())
