"""Ops of a module as a list and by class, and its copies: as xDSL's own walks and clones."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest
from xdsl.context import Context
from xdsl.dialects.arith import Arith, ConstantOp, SignlessIntegerBinaryOperation
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.dialects.cf import Cf
from xdsl.dialects.func import Func, FuncOp
from xdsl.dialects.scf import Scf

from spyre_mlir.dialects.ir.modules import KeptOp, OpsByClass, copy_of, ops_in, take_apart
from spyre_mlir.text import parse_module
from spyre_mlir.text.render import module_text

NESTED = """
func.func @f(%x: index, %named: index) -> index {
  %0 = arith.constant 4 : index
  %1 = arith.addi %x, %0 : index
  scf.for %i = %0 to %1 step %0 {
    %2 = arith.muli %i, %named : index
    scf.yield
  }
  func.return %1 : index
}
func.func private @declared(index)
"""
# The second block uses what the third, written behind it, defines.
BACKWARD = """
func.func @f() -> index {
  cf.br ^last
^middle:
  func.return %0 : index
^last:
  %0 = arith.constant 4 : index
  cf.br ^middle
}
"""


def module(text: str) -> ModuleOp:
    context = Context()
    for dialect in (Arith, Builtin, Cf, Func, Scf):
        context.load_dialect(dialect)
    return parse_module(text, context, "modules.mlir")


def test_ops_come_in_the_order_of_a_walk() -> None:
    names = ["builtin.module", "func.func", "arith.constant", "arith.addi", "scf.for", "arith.muli", "scf.yield"]
    found = ops_in(module(NESTED))
    assert [op.name for op in found] == [*names, "func.return", "func.func"]
    assert [op.name for op in ops_in(module(BACKWARD))][2:] == ["cf.br", "func.return", "arith.constant", "cf.br"]


def test_ops_are_found_by_class_and_by_its_bases() -> None:
    those = OpsByClass(ops_in(module(NESTED)))
    assert [str(op.value) for op in those.of(ConstantOp)] == ["4 : index"]
    assert [op.name for op in those.of(SignlessIntegerBinaryOperation)] == ["arith.addi", "arith.muli"]
    assert [op.sym_name.data for op in those.of(FuncOp)] == ["f", "declared"]
    assert those.of(ModuleOp) != []


@pytest.mark.parametrize("text", [NESTED, BACKWARD])
def test_a_copy_has_the_text_and_no_value_of_the_original(text: str) -> None:
    original = module(text)
    before = module_text(original, locations=True)
    copied = copy_of(original)
    copied.verify()
    assert module_text(copied, locations=True) == module_text(original.clone(), locations=True)
    own = {result for op in copied.walk() for result in op.results}
    own |= {argument for op in copied.walk() for r in op.regions for b in r.blocks for argument in b.args}
    assert all(operand in own for op in copied.walk() for operand in op.operands)
    assert module_text(original, locations=True) == before


def test_uses_of_a_copy_are_in_the_order_of_a_clone() -> None:
    def order(made: ModuleOp) -> list[list[str]]:
        return [[use.operation.name for use in r.uses] for op in made.walk() for r in op.results]

    original = module(NESTED)
    assert order(copy_of(original)) == order(original.clone())


@pytest.fixture
def uncollected() -> Iterator[None]:
    """Without the cycle collector: what goes, goes because nothing refers to it."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("text", [NESTED, BACKWARD])
def test_a_module_taken_apart_goes_without_the_collector(text: str, uncollected: None) -> None:
    made = module(text)
    parts = [weakref.ref(op) for op in made.walk()]
    take_apart(made)
    del made
    assert len(parts) > 5
    assert [part() for part in parts if part() is not None] == []


def test_an_op_leaves_its_block_when_it_is_taken_apart() -> None:
    made = module(NESTED)
    declared = made.body.block.last_op
    assert isinstance(declared, FuncOp)
    take_apart(declared)
    assert "declared" not in module_text(made)


def test_a_kept_op_goes_with_its_holder(uncollected: None) -> None:
    kept = KeptOp(copy_of(module(NESTED)))
    part = weakref.ref(next(op for op in kept.op.walk() if isinstance(op, ConstantOp)))
    assert part() is not None
    del kept
    assert part() is None
