"""Text to module and back: formats, names of values, places of errors, and which op does not verify."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from xdsl.context import Context
from xdsl.dialects.arith import AddiOp, Arith
from xdsl.dialects.builtin import Builtin, ModuleOp, StringAttr, UnknownLoc, i32, i64
from xdsl.dialects.cf import Cf
from xdsl.dialects.func import Func
from xdsl.dialects.test import Test, TestOp, TestTermOp
from xdsl.ir import Block, Dialect, Region
from xdsl.irdl import IRDLOperation, irdl_op_definition
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, VerifyException

from spyre_mlir.errors import ReadError
from spyre_mlir.text.render import InvalidOperation, decode, module_text, parse_module, value_names, verify_module
from spyre_mlir.text.verify import UseBeforeDefinition


@irdl_op_definition
class FailingOp(IRDLOperation):
    """An op that fails where it is read or verified."""

    name = "failing.op"
    READ: ClassVar[Exception] = ValueError()
    VERIFIED: ClassVar[Exception] = ValueError()

    @classmethod
    def parse(cls, parser: Parser) -> FailingOp:
        raise cls.READ

    def verify_(self) -> None:
        raise self.VERIFIED


@pytest.fixture
def context() -> Context:
    context = Context()
    for dialect in (Builtin, Arith, Cf, Func, Test, Dialect("failing", [FailingOp])):
        context.load_dialect(dialect)
    return context


ADD = "%a = arith.constant 1 : i32\n%b = arith.addi %a, %a : i32"


def test_formats(context: Context) -> None:
    module = parse_module(ADD, context, "here.mlir")
    assert module_text(module) == ("builtin.module {\n  %a = arith.constant 1 : i32\n  %b = arith.addi %a, %a : i32\n}")
    generic = module_text(module, generic=True)
    assert '"builtin.module"() ({' in generic
    assert '%b = "arith.addi"(%a, %a)' in generic
    assert "loc(" not in module_text(module)
    placed = module_text(module, locations=True)
    assert '%b = arith.addi %a, %a : i32 loc("here.mlir":2:1)' in placed
    assert '"arith.addi"' not in placed


def test_names_of_values_are_those_of_the_text(context: Context) -> None:
    module = parse_module(f"{ADD}\n%0 = arith.addi %b, %b : i32", context)
    values = [op.results[0] for op in module.ops]
    assert value_names(module) == dict(zip(values, ("a", "b", "0"), strict=True))


def test_ops_outside_of_a_module_are_put_into_one_unless_told_not_to(context: Context) -> None:
    assert [op.name for op in parse_module(ADD, context).ops] == ["arith.constant", "arith.addi"]
    with pytest.raises(ParseError):
        parse_module(ADD, context, implicit_module=False)


def test_places_in_the_text_are_attached_unless_told_not_to(context: Context) -> None:
    (op,) = parse_module('\n"test.op"() : () -> ()', context).ops
    assert str(op.location) == 'loc("<text>":2:1)'
    (op,) = parse_module('\n"test.op"() : () -> ()', context, line_offset=5).ops
    assert str(op.location) == 'loc("<text>":7:1)'
    (op,) = parse_module('\n"test.op"() : () -> ()', context, locations=False).ops
    assert isinstance(op.location, UnknownLoc)


def test_bytes_are_utf8(context: Context) -> None:
    (op,) = parse_module('"test.op"() {a = "é"} : () -> ()'.encode(), context).ops
    assert op.attributes["a"] == StringAttr("é")
    with pytest.raises(ReadError) as caught:
        parse_module(b'// \xff\n"test.op"() : () -> ()', context, "bad.mlir", line_offset=10)
    assert caught.value.where == "bad.mlir:11:4"


def test_a_mark_of_the_byte_order_is_no_text(context: Context) -> None:
    (op,) = parse_module(b'\xef\xbb\xbf"test.op"() : () -> ()', context).ops
    assert op.name == "test.op"


@pytest.mark.parametrize(
    ("data", "offset", "where"),
    [(b"\xfe", 0, "f:1:1"), (b"ab\ncd\xfe", 0, "f:2:3"), (b"\n\n\xfe\n\xfe", 0, "f:3:1"), (b"\n\xfe", 7, "f:9:1")],
)
def test_the_first_byte_that_is_not_utf8_is_named(data: bytes, offset: int, where: str) -> None:
    with pytest.raises(ReadError, match="the file is not UTF-8 text: byte 0xfe") as caught:
        decode(data, "f", offset)
    assert caught.value.where == where
    assert caught.value.hint == "save the file as UTF-8; IR strings are best kept ASCII"
    assert decode("é\n".encode(), "f") == "é\n"
    with pytest.raises(ReadError) as caught:
        decode(b"\n\xfe", "f")
    assert caught.value.where == "f:2:1"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (VerifyException("no such thing"), "no such thing"),
        (ValueError("no such thing"), "no such thing"),
        (OverflowError("no such thing"), "no such thing"),
        (AssertionError("two of them"), r"this cannot be read \(two of them\)"),
        (AssertionError(), r"this cannot be read \(AssertionError\)"),
        (NotImplementedError(), r"this cannot be read \(NotImplementedError\)"),
        (IndexError("index out of range"), r"this cannot be read \(index out of range\)"),
    ],
)
def test_what_fails_inside_the_reader_is_an_error_at_its_place(
    error: Exception, message: str, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FailingOp, "READ", error)
    with pytest.raises(ParseError, match=message) as caught:
        parse_module("\nfailing.op %x", context, "here.mlir")
    assert "here.mlir:2" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "sign"), [("%", "%"), ('module {\n  %a = "test.op"(%', "%"), ("func.func @f(%x: !", "!")]
)
def test_a_text_that_is_cut_off_behind_a_sign_says_so(text: str, sign: str, context: Context) -> None:
    with pytest.raises(ParseError, match=f"expected a name or a number behind {sign}, the text may be cut off"):
        parse_module(text, context)


def invalid() -> AddiOp:
    """A sum of two types, which does not verify."""
    narrow, wide = TestOp(result_types=[i32]), TestOp(result_types=[i64])
    return AddiOp.create(operands=[narrow.results[0], wide.results[0]], result_types=[i32])


def with_operands(op: AddiOp) -> list[Any]:
    return [*(operand.owner for operand in op.operands), op, TestTermOp()]


def test_a_sound_module_verifies(context: Context) -> None:
    verify_module(parse_module(ADD, context))
    verify_module(ModuleOp([]))


def test_the_innermost_op_that_does_not_verify_is_the_guilty_one() -> None:
    first, second = invalid(), invalid()
    sound = TestOp(regions=[Region(Block([TestTermOp()])), Region()])
    holder = TestOp(regions=[Region(), Region(Block(with_operands(first)))])
    module = ModuleOp([sound, holder, *with_operands(second)])
    with pytest.raises(InvalidOperation, match="i32") as caught:
        verify_module(module)
    assert caught.value.op is first


def test_a_use_before_its_definition_knows_its_op(context: Context) -> None:
    module = parse_module('"test.op"(%x) : (i32) -> ()\n%x = "test.op"() : () -> i32', context)
    with pytest.raises(UseBeforeDefinition) as caught:
        verify_module(module)
    assert caught.value.op is module.body.block.first_op


def test_an_empty_block_beside_others_is_refused() -> None:
    holder = TestOp(regions=[Region([Block([TestTermOp()]), Block()])])
    with pytest.raises(InvalidOperation, match="a block is empty; try a terminator") as caught:
        verify_module(ModuleOp([TestOp(regions=[Region(Block([TestTermOp()]))]), holder]))
    assert caught.value.op is holder


@pytest.mark.parametrize("error", [KeyError("x"), AttributeError("x")])
def test_an_op_that_trips_over_another_leaves_the_blame_with_that_one(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FailingOp, "VERIFIED", error)
    guilty = invalid()
    with pytest.raises(InvalidOperation, match="i32") as caught:
        verify_module(ModuleOp([FailingOp(), *with_operands(guilty)]))
    assert caught.value.op is guilty


def test_a_failure_without_an_unsound_op_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FailingOp, "VERIFIED", KeyError("x"))
    with pytest.raises(KeyError, match="x"):
        verify_module(ModuleOp([FailingOp()]))
