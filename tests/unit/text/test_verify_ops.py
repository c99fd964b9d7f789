"""Ops of one form are verified once, all others as always."""

from __future__ import annotations

import pytest
from xdsl.dialects import arith, func
from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr, ModuleOp, TensorType, f32, i32
from xdsl.dialects.test import TestOp
from xdsl.ir import Attribute, Block, Operation, Region
from xdsl.irdl import OpDef
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.dialects.spyre.attributes import IndexMapAttr, IterDim, SpaceAttr
from spyre_mlir.dialects.spyre.loop import NestOp, YieldOp
from spyre_mlir.hw.sticks import LinearExpr
from spyre_mlir.text.verify_ops import verify_ops

INDEX = IndexType()


def constant(value: int) -> arith.ConstantOp:
    return arith.ConstantOp(IntegerAttr(value, INDEX))


def function(*ops: Operation) -> ModuleOp:
    return ModuleOp([func.FuncOp("f", ([], []), Region(Block([*ops, func.ReturnOp()])))])


def sums(count: int) -> list[Operation]:
    one = constant(1)
    return [one, *(op for n in range(count) for op in _sum(one, n))]


def _sum(one: arith.ConstantOp, n: int) -> tuple[Operation, Operation]:
    other = constant(n)
    return other, arith.AddiOp(one, other)


def test_a_form_is_verified_once(monkeypatch: pytest.MonkeyPatch) -> None:
    verified: list[str] = []
    real = OpDef.verify

    def count(self: OpDef, op: Operation) -> None:
        verified.append(op.name)
        real(self, op)

    verify_ops(function(*sums(1)))
    monkeypatch.setattr(OpDef, "verify", count)
    verify_ops(function(*sums(5)))
    assert verified == ["func.return", "func.func", "builtin.module"]


@pytest.mark.parametrize("wrong", ["operand", "result", "property"])
def test_another_form_is_refused(wrong: str) -> None:
    one, two = constant(1), constant(2)
    verify_ops(function(constant(1), *sums(2)))
    wide = arith.ConstantOp(IntegerAttr(1, i32))
    flags = IntegerAttr(1, i32) if wrong == "property" else arith.IntegerOverflowAttr("none")
    bad = arith.AddiOp.create(
        operands=[one.result, wide.result if wrong == "operand" else two.result],
        result_types=[i32 if wrong == "result" else INDEX],
        properties={"overflowFlags": flags},
    )
    with pytest.raises(VerifyException, match="Operation does not verify"):
        verify_ops(function(one, two, wide, bad))


def test_a_number_of_another_type_is_refused() -> None:
    verify_ops(function(constant(1)))
    bad = arith.ConstantOp.create(result_types=[INDEX], properties={"value": IntegerAttr(1, i32)})
    with pytest.raises(VerifyException, match="Operation does not verify"):
        verify_ops(function(bad))


def test_a_plain_op_is_no_terminator() -> None:
    module = ModuleOp([func.FuncOp("f", ([], []), Region(Block([constant(1), constant(1)])))])
    with pytest.raises(VerifyException, match="not a terminator"):
        verify_ops(module)


def copying(element: Attribute) -> tuple[Operation, Operation]:
    """A tensor, and a nest that copies it."""
    tensor = TensorType(element, [4])
    block = Block(arg_types=[element])
    block.add_op(YieldOp(operands=[[block.args[0]]]))
    space = SpaceAttr((IterDim("i", 4),))
    made = TestOp(result_types=[tensor])
    maps = [IndexMapAttr((LinearExpr.of("i"),))] * 2
    return made, NestOp(space, [made.results[0]], maps, tensor, Region(block))


def test_the_end_of_a_body_is_verified_once_for_the_op_around_it(monkeypatch: pytest.MonkeyPatch) -> None:
    verified: list[str] = []
    real = OpDef.verify

    def count(self: OpDef, op: Operation) -> None:
        verified.append(op.name)
        real(self, op)

    verify_ops(function(*copying(f32)))
    monkeypatch.setattr(OpDef, "verify", count)
    verify_ops(function(*copying(f32), *copying(f32)))
    assert "spyre.loop.yield" not in verified
    assert verified.count("spyre.loop.nest") == 2
    other = arith.ConstantOp(FloatAttr(0.0, f32))
    misplaced = func.FuncOp("f", ([], []), Region(Block([other, YieldOp(operands=[[other.result]])])))
    with pytest.raises(VerifyException, match=r"expects parent op 'spyre\.loop\.nest'"):
        verify_ops(ModuleOp([misplaced]))


def test_an_end_in_the_middle_is_refused() -> None:
    verify_ops(function(*copying(f32)))
    first, nest = copying(f32)
    body = nest.regions[0].block
    body.add_op(YieldOp(operands=[[body.args[0]]]))
    with pytest.raises(VerifyException, match="must be the last operation"):
        verify_ops(function(first, nest))


def test_an_empty_block_is_refused() -> None:
    with pytest.raises(VerifyException, match="empty block"):
        verify_ops(ModuleOp([func.FuncOp("f", ([], []), Region(Block()))]))
