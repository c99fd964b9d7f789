"""Last uses in KTIR functions: which values die after which op."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from spyre_mlir.machine.ktdp.liveness import Liveness
from tests.unit.machine.ktdp.ktir_programs import read

PROGRAM = """
func.func @f(%p: index, %unused: index) attributes {grid = [1]} {
  %a = arith.constant 1 : index
  %b = arith.addi %a, %p : index
  %alone = arith.muli %b, %a : index
  %kept = arith.constant 5 : index
  %r = scf.for %i = %a to %b step %a iter_args(%s = %kept) -> (index) {
    %t = arith.addi %s, %b : index
    %last = arith.muli %t, %t : index
    scf.yield %last : index
  }
  %end = arith.addi %r, %r : index
  return
}
"""


def named(module: ModuleOp) -> dict[str, list[str]]:
    """By an op's result, or its name if it has none, the names of the values that die with it."""
    (function,) = (op for op in module.walk() if isinstance(op, FuncOp))

    def name(value: SSAValue) -> str:
        return value.name_hint or "?"

    def called(op: Operation) -> str:
        return name(op.results[0]) if op.results else op.name

    return {called(op): sorted(map(name, values)) for op, values in Liveness(function).dying.items()}


def test_a_value_dies_with_the_last_op_of_its_block_that_needs_it() -> None:
    dying = named(read(PROGRAM))
    assert dying["b"] == ["p"]
    assert dying["r"] == ["a", "b", "kept"]  # the loop uses them, or what is in it
    assert dying["t"] == ["i", "s"]  # one is used there, one nowhere: it dies with the first op
    assert dying["last"] == ["t"]
    assert dying["scf.yield"] == ["last"]


def test_a_value_that_nobody_uses_dies_with_its_op() -> None:
    dying = named(read(PROGRAM))
    assert dying["alone"] == ["alone"]
    assert dying["end"] == ["end", "r"]
    assert dying["a"] == ["unused"]  # an argument, with the first op
    assert "kept" not in dying
