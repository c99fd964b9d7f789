"""Arithmetic on addresses: sums and products of index numbers are plain ones, and other types wrap at their width."""

from __future__ import annotations

import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IndexType, ModuleOp, f32, i32
from xdsl.dialects.test import TestOp
from xdsl.interpreter import Interpreter
from xdsl.ir import Attribute

from spyre_mlir.dialects.ir.functions import functions
from spyre_mlir.machine.bundle.addresses import AddressFunctions, address_rules
from spyre_mlir.machine.levels.calls import FunctionRules
from spyre_mlir.text.render import parse_module
from spyre_mlir.universe import make_context

INDEX = IndexType()


def interpreter() -> Interpreter:
    made = Interpreter(ModuleOp([]), index_bitwidth=64)
    made.register_implementations(AddressFunctions())
    return made


def computed(kind: type[arith.AddiOp] | type[arith.MuliOp], left: int, right: int, type_: Attribute) -> int:
    operands = TestOp(result_types=[type_, type_]).results
    (found,) = interpreter().run_op(kind(*operands, type_), (left, right))
    return found


def test_a_constant_is_its_number() -> None:
    assert interpreter().run_op(arith.ConstantOp.from_int_and_width(1 << 40, INDEX), ()) == (1 << 40,)
    assert interpreter().run_op(arith.ConstantOp(FloatAttr(0.5, f32)), ()) == (0.5,)


@pytest.mark.parametrize(
    ("left", "right", "total"),
    [(1 << 34, 128, (1 << 34) + 128), (5, -7, -2), (2**62, 2**62 - 1, 2**63 - 1), (2**62, 2**62, -(2**63))],
)
def test_a_sum_of_indices_wraps_at_64_bits_only(left: int, right: int, total: int) -> None:
    assert computed(arith.AddiOp, left, right, INDEX) == total


@pytest.mark.parametrize(
    ("left", "right", "product"),
    [(3, 1 << 34, 3 << 34), (-4, 5, -20), (2**31, 2**31, 2**62), (2**32, 2**31, -(2**63)), (-(2**33), 2**31, 0)],
)
def test_a_product_of_indices_wraps_at_64_bits_only(left: int, right: int, product: int) -> None:
    assert computed(arith.MuliOp, left, right, INDEX) == product


@pytest.mark.parametrize(
    ("kind", "left", "right", "found"),
    [
        (arith.AddiOp, 2**31 - 1, 1, -(2**31)),
        (arith.MuliOp, 2**16, 2**15, -(2**31)),
        (arith.AddiOp, 2, 3, 5),
        (arith.MuliOp, 2, 3, 6),
    ],
)
def test_numbers_of_32_bits_wrap_at_theirs(
    kind: type[arith.AddiOp] | type[arith.MuliOp], left: int, right: int, found: int
) -> None:
    assert computed(kind, left, right, i32) == found


@pytest.mark.parametrize(("word", "found"), [("addi", 12), ("subi", 8)])
def test_other_operations_have_the_rules_of_xdsl(word: str, found: int) -> None:
    text = (
        f"func.func @main(%a: index, %b: index) -> index {{ %c = arith.{word} %a, %b : index func.return %c : index }}"
    )
    module = parse_module(text, make_context(), "main.mlir")
    (function,) = functions(module)
    made = Interpreter(module, index_bitwidth=64)
    for rules in (FunctionRules(), address_rules(function)):
        made.register_implementations(rules)
    assert made.call_op("main", (10, 2)) == (found,)
    assert isinstance(address_rules(function), AddressFunctions) is (word == "addi")
