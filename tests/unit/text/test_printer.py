"""Text keeps every value: print, parse, print again."""

import math
import struct
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.dialects.arith import Arith
from xdsl.dialects.builtin import (
    AnyFloat,
    Builtin,
    BytesAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    TensorType,
    bf16,
    f16,
    f32,
    f64,
    i1,
    i64,
)
from xdsl.dialects.func import Func
from xdsl.dialects.test import Test, TestOp
from xdsl.ir import Attribute
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError

from spyre_mlir.text import module_text, parse_module

FLOATS: dict[str, AnyFloat] = {"f16": f16, "bf16": bf16, "f32": f32, "f64": f64}
SPECIAL = [math.inf, -math.inf, math.nan, -math.nan, 0.0, -0.0]
# Bits from IEEE 754 and, for bf16, the upper half of binary32.
BITS = {
    "f16": ("0x7C00", "0xFC00", "0x7E00"),
    "bf16": ("0x7F80", "0xFF80", "0x7FC0"),
    "f32": ("0x7F800000", "0xFF800000", "0x7FC00000"),
    "f64": ("0x7FF0000000000000", "0xFFF0000000000000", "0x7FF8000000000000"),
}


@pytest.fixture(scope="module")
def context() -> Context:
    return make_context()


def make_context() -> Context:
    context = Context()
    context.load_dialect(Builtin)
    context.load_dialect(Test)
    return context


def module_with(*attributes: Attribute) -> ModuleOp:
    return ModuleOp([TestOp(attributes={f"a{index}": attribute for index, attribute in enumerate(attributes)})])


def check_round_trip(module: ModuleOp, context: Context) -> None:
    for generic in (False, True):
        text = module_text(module, generic=generic)
        again = parse_module(text, context)
        assert again.is_structurally_equivalent(module)
        assert module_text(again, generic=generic) == text


def attribute_of(module: ModuleOp) -> Attribute:
    (op,) = module.ops
    (attribute,) = op.attributes.values()
    return attribute


@pytest.mark.parametrize("name", FLOATS)
def test_special_values_everywhere(name: str, context: Context):
    type_ = FLOATS[name]
    scalars = [FloatAttr(value, type_) for value in SPECIAL]
    splats = [DenseIntOrFPElementsAttr.from_list(TensorType(type_, [2, 3]), [value] * 6) for value in SPECIAL]
    mixed = DenseIntOrFPElementsAttr.from_list(TensorType(type_, [3, 2]), SPECIAL)
    check_round_trip(module_with(*scalars, *splats, mixed, DenseArrayBase.from_list(type_, SPECIAL)), context)


@pytest.mark.parametrize("name", FLOATS)
def test_spelling_is_the_bits(name: str, context: Context):
    type_ = FLOATS[name]
    infinity, minus, nan = BITS[name]
    values = [math.inf, -math.inf, math.nan]
    text = module_text(module_with(DenseIntOrFPElementsAttr.from_list(TensorType(type_, [3]), values)))
    assert f"dense<[{infinity}, {minus}, {nan}]> : tensor<3x{name}>" in text
    assert f"array<{name}: {infinity}>" in module_text(module_with(DenseArrayBase.from_list(type_, [math.inf])))


@pytest.mark.parametrize("name", FLOATS)
def test_bits_are_read_as_bits(name: str, context: Context):
    for spelling, expected in zip(BITS[name], (math.inf, -math.inf, math.nan), strict=True):
        for digits in (spelling, spelling.lower()):
            dense = attribute_of(
                parse_module(f'"test.op"() {{a = dense<{digits}> : tensor<2x{name}>}} : () -> ()', context)
            )
            assert isinstance(dense, DenseIntOrFPElementsAttr)
            first, second = dense.get_values()
            assert struct.pack("d", first) == struct.pack("d", second) == struct.pack("d", expected)
            array = attribute_of(parse_module(f'"test.op"() {{a = array<{name}: {digits}, 1.5>}} : () -> ()', context))
            assert isinstance(array, DenseArrayBase)
            assert struct.pack("d", array.get_values()[0]) == struct.pack("d", expected)
            assert array.get_values()[1] == 1.5


def test_zeros_of_both_signs_are_no_splat(context: Context):
    zeros = DenseIntOrFPElementsAttr.from_list(TensorType(f32, [2]), [0.0, -0.0])
    assert "dense<[0.000000e+00, -0.000000e+00]>" in module_text(module_with(zeros))


def test_equal_nans_are_a_splat(context: Context):
    nans = DenseIntOrFPElementsAttr.from_list(TensorType(f16, [4]), [math.nan] * 4)
    assert "dense<0x7E00> : tensor<4xf16>" in module_text(module_with(nans))


def test_hexadecimal_integers_stay_integers(context: Context):
    module = parse_module('"test.op"() {a = dense<0x7c00> : tensor<1xi64>} : () -> ()', context)
    assert attribute_of(module) == DenseIntOrFPElementsAttr.from_list(TensorType(i64, [1]), [0x7C00])


def test_integers_and_booleans(context: Context):
    truth = DenseIntOrFPElementsAttr.from_list(TensorType(i1, [3]), [1, 0, 1])
    many = DenseIntOrFPElementsAttr.from_list(TensorType(i64, [101]), list(range(101)))
    matrix = DenseIntOrFPElementsAttr.from_list(TensorType(i64, [2, 2, 1]), [1, -2, 3, 4])
    empty = DenseIntOrFPElementsAttr.from_list(TensorType(f32, [0]), [])
    check_round_trip(module_with(truth, many, matrix, empty, IntegerAttr(3, i64)), context)
    assert "dense<[[[1], [-2]], [[3], [4]]]>" in module_text(module_with(matrix))


def test_text_beyond_ascii_stays_text(context: Context):
    module = ModuleOp([TestOp(attributes={"α": StringAttr('β \\ "'), "plain": BytesAttr(b"\xff")})])
    check_round_trip(module, context)


PROGRAM = """
func.func @f(%a : tensor<4x?xf16>, %b : memref<2x4xf32, strided<[4, 1], offset: 2>>) -> (tensor<4x?xf16>, i1) {
  %c = arith.constant dense<[[1.5, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %k:2 = "test.op"(%a) <{"prop1" = dense<1> : tensor<3xi64>}> ({
  ^bb0(%x : i32):
    "test.termop"() {map = affine_map<(d0) -> (d0 * 2)>, f = 1.1 : f32, g = 0.1 : f64} : () -> ()
  }) : (tensor<4x?xf16>) -> (tensor<4x?xf16>, i1)
  func.return %k#0, %k#1 : tensor<4x?xf16>, i1
}
"""


@pytest.mark.parametrize("generic", [False, True])
def test_ordinary_text_is_that_of_xdsl(generic: bool):
    context = make_context()
    for dialect in (Func, Arith):
        context.load_dialect(dialect)
    stock = StringIO()
    Printer(stock, print_generic_format=generic).print_op(Parser(context, PROGRAM).parse_module())
    assert module_text(parse_module(PROGRAM, context), generic=generic) == stock.getvalue()


@pytest.mark.parametrize("literal", ["dense<0x1FFFF> : tensor<1xf16>", "array<f16: 0x1FFFF>", "0x1FFFF : f16"])
def test_too_many_bits_are_an_error_with_a_place(literal: str, context: Context):
    with pytest.raises(ParseError) as caught:
        parse_module(f'"test.op"() {{a = {literal}}} : () -> ()', context, "bits.mlir")
    assert caught.value.span.get_location().line == 1


def float_attributes(type_: AnyFloat) -> st.SearchStrategy[Attribute]:
    size = type_.compile_time_size
    # From raw bytes: every bit pattern, subnormal numbers and NaN payloads among them.
    values = st.binary(min_size=size, max_size=size).map(lambda raw: type_.unpack(raw, 1)[0])
    lists = st.lists(values, min_size=1, max_size=8)
    return st.one_of(
        values.map(lambda value: FloatAttr(value, type_)),
        lists.map(lambda some: DenseArrayBase.from_list(type_, some)),
        lists.map(lambda some: DenseIntOrFPElementsAttr.from_list(TensorType(type_, [len(some)]), some)),
    )


@given(st.lists(st.sampled_from(list(FLOATS.values())).flatmap(float_attributes), min_size=1, max_size=4))
def test_any_float_round_trips(attributes: list[Attribute]):
    check_round_trip(module_with(*attributes), make_context())
