"""A value must be defined before it is used."""

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.dialects.cf import Cf
from xdsl.dialects.func import Func
from xdsl.dialects.test import Test

from spyre_mlir.text import parse_module, verify_dominance
from spyre_mlir.text.verify import UseBeforeDefinition


def check(text: str) -> None:
    context = Context()
    for dialect in (Builtin, Func, Cf, Test):
        context.load_dialect(dialect)
    verify_dominance(parse_module(text, context, "dominance.mlir"))


def test_order_in_a_block():
    check('%x = "test.op"() : () -> i32\n"test.op"(%x) : (i32) -> ()')
    with pytest.raises(UseBeforeDefinition, match=r"operand #0 \(%x\) of 'test.op'") as caught:
        check('"test.op"(%x) : (i32) -> ()\n%x = "test.op"() : () -> i32')
    assert str(caught.value.op.location) == 'loc("dominance.mlir":1:1)'


def test_own_result():
    with pytest.raises(UseBeforeDefinition):
        check('%x = "test.op"(%x) : (i32) -> i32')


def test_region_sees_what_is_before_its_op():
    check('%x = "test.op"() : () -> i32\n"test.op"() ({ "test.op"(%x) : (i32) -> () }) : () -> ()')
    with pytest.raises(UseBeforeDefinition):
        check('"test.op"() ({ "test.op"(%x) : (i32) -> () }) : () -> ()\n%x = "test.op"() : () -> i32')


DIAMOND = """
func.func @f(%c: i1) -> i32 {{
  {entry}
  cf.cond_br %c, ^left, ^right
^left:
  {left}
  cf.br ^join
^right:
  cf.br ^join
^join:
  func.return %v : i32
}}
"""
DEFINE = '%v = "test.op"() : () -> i32'


def test_blocks():
    check(DIAMOND.format(entry=DEFINE, left=""))
    with pytest.raises(UseBeforeDefinition, match=r"'func.return'"):
        check(DIAMOND.format(entry="", left=DEFINE))


def test_loop_may_use_what_its_header_defines():
    check(f"""
func.func @f(%c: i1) {{
  cf.br ^header
^body:
  "test.op"(%v) : (i32) -> ()
  cf.br ^header
^header:
  {DEFINE}
  cf.cond_br %c, ^body, ^exit
^exit:
  func.return
}}""")


def test_long_chain_of_blocks_does_not_recurse():
    blocks = "".join(f"^b{i}:\n  cf.br ^b{i + 1}\n" for i in range(3000))
    check(f"func.func @f() {{\n  {DEFINE}\n  cf.br ^b0\n{blocks}^b3000:\n  func.return\n}}")
