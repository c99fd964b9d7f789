"""Short forms of upstream ops: each is read as the same op in its long form."""

from __future__ import annotations

import pytest
from xdsl.dialects import scf
from xdsl.dialects.arith import AddfOp
from xdsl.dialects.builtin import IndexType, ModuleOp, i32
from xdsl.dialects.linalg import ops as linalg
from xdsl.utils.exceptions import ParseError

from spyre_mlir.text.render import module_text, parse_module, verify_module
from spyre_mlir.text.short_forms import SHORT_FORMS, ForForm, ReduceForm
from spyre_mlir.universe import make_context


def read(text: str) -> ModuleOp:
    module = parse_module(text, make_context())
    verify_module(module)
    return module


BOUNDS = """
%l = arith.constant 0 : index
%u = arith.constant 8 : index
%s = arith.constant 1 : index
%a = tensor.empty() : tensor<4xf32>
"""
ONE = BOUNDS + "%r = scf.for %i = %l to %u step %s iter_args(%c = %a) -> {types} {{ scf.yield %c : tensor<4xf32> }}"


def test_the_op_that_is_read_is_the_upstream_one() -> None:
    assert dict(SHORT_FORMS) == {scf.ForOp: ForForm, linalg.ReduceOp: ReduceForm}
    *_, loop = read(ONE.format(types="tensor<4xf32>")).ops
    assert type(loop) is scf.ForOp


def test_one_carried_type_may_stand_without_parentheses() -> None:
    short, long = (read(ONE.format(types=types)) for types in ("tensor<4xf32>", "(tensor<4xf32>)"))
    assert short.is_structurally_equivalent(long)
    *_, low, high, step, carried, loop = short.ops
    assert isinstance(loop, scf.ForOp)
    assert [loop.lb, loop.ub, loop.step, *loop.iter_args] == [op.results[0] for op in (low, high, step, carried)]
    assert isinstance(loop.body.block.args[0].type, IndexType)
    assert read(module_text(short)).is_structurally_equivalent(short)


def test_a_loop_may_carry_nothing_or_several_values() -> None:
    *_, bare = read(BOUNDS + "scf.for %i = %l to %u step %s { }").ops
    assert isinstance(bare, scf.ForOp)
    assert not bare.iter_args and not bare.results
    assert [op.name for op in bare.body.block.ops] == ["scf.yield"]
    *_, pair = read(
        BOUNDS + "%r:2 = scf.for %i = %l to %u step %s iter_args(%c = %a, %d = %s) -> (tensor<4xf32>, index) "
        "{ scf.yield %c, %d : tensor<4xf32>, index } {note = 1 : i32}"
    ).ops
    assert isinstance(pair, scf.ForOp)
    assert [str(result.type) for result in pair.results] == ["tensor<4xf32>", "index"]
    assert list(pair.attributes) == ["note"]


def test_the_generic_form_makes_the_upstream_op() -> None:
    for text in (ONE.format(types="tensor<4xf32>"), REDUCE.format(combiner="arith.addf", into="tensor<4xf32>")):
        module = read(text)
        again = read(module_text(module, generic=True))
        assert again.is_structurally_equivalent(module)
        assert [type(op) for op in again.ops] == [type(op) for op in module.ops]


def test_a_loop_may_count_in_another_type() -> None:
    *_, loop = read(
        "%l = arith.constant 0 : i32\n%u = arith.constant 8 : i32\nscf.for %i = %l to %u step %u : i32 { scf.yield }"
    ).ops
    assert isinstance(loop, scf.ForOp)
    assert loop.body.block.args[0].type == i32


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("scf.for %i of %l to %u step %s { }", "="),
        ("scf.for %i = %l until %u step %s { }", "to"),
        ("scf.for %i = %l to %u by %s { }", "step"),
        ("%r = scf.for %i = %l to %u step %s iter_args(%c %a) -> index { }", "="),
        ("%r = scf.for %i = %l to %u step %s iter_args(%c = %a) index { }", "->"),
        ("%r = scf.for %i = %l to %u step %s iter_args(%c = %a) -> (index, index) { }", "expected"),
    ],
)
def test_what_is_no_loop_is_refused(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        read(BOUNDS + text)


TENSORS = "%x = tensor.empty() : tensor<4x8x2xf32>\n%y = tensor.empty() : tensor<4xf32>\n"
REDUCE = TENSORS + (
    "%r = linalg.reduce {{ {combiner} }} ins(%x : tensor<4x8x2xf32>) outs(%y : {into}) dimensions = [1, 2]"
)


def test_a_combiner_by_its_name_takes_what_is_there_first_then_the_element() -> None:
    module = read(REDUCE.format(combiner="arith.addf", into="tensor<4xf32>"))
    source, into, reduce = module.ops
    assert type(reduce) is linalg.ReduceOp
    assert [*reduce.operands] == [source.results[0], into.results[0]]
    assert reduce.dimensions.get_values() == (1, 2)
    element, so_far = reduce.regions[0].block.args
    combined, end = reduce.regions[0].block.ops
    assert isinstance(combined, AddfOp)
    assert [combined.lhs, combined.rhs] == [so_far, element]
    assert isinstance(end, linalg.YieldOp)
    assert [*end.operands] == [combined.result]
    assert read(module_text(module)).is_structurally_equivalent(module)


def test_a_combiner_keeps_its_attributes() -> None:
    module = read(REDUCE.format(combiner="arith.addf {note = 1 : i32}", into="tensor<4xf32>"))
    (combined,) = (op for op in module.walk() if isinstance(op, AddfOp))
    assert list(combined.attributes) == ["note"]


def test_the_long_form_of_a_reduction_is_read_as_ever() -> None:
    text = TENSORS + (
        "%r = linalg.reduce ins(%x : tensor<4x8x2xf32>) outs(%y : tensor<4xf32>) dimensions = [1, 2]\n"
        "(%e : f32, %a : f32) { %s = arith.addf %a, %e : f32 linalg.yield %s : f32 }"
    )
    assert read(text).is_structurally_equivalent(read(REDUCE.format(combiner="arith.addf", into="tensor<4xf32>")))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{ arith.nothing } ins(%x", "combines with an operation, and arith.nothing is not registered"),
        ("{ arith.addf ins(%x", "'}'"),
        ("{ arith.addf } outs(%y", "ins"),
        ("{ arith.addf } ins %x", r"'\('"),
        ("{ arith.addf } ins(%x, ", "':'"),
        ("{ arith.addf } ins(%x : tensor<4x8x2xf32> outs", r"'\)'"),
        ("{ arith.addf } ins(%x : tensor<4x8x2xf32>) dimensions", "outs"),
        ("{ arith.addf } ins(%x : tensor<4x8x2xf32>) outs(%y : tensor<4xf32>) along", "dimensions"),
        ("{ arith.addf } ins(%x : tensor<4x8x2xf32>) outs(%y : tensor<4xf32>) dimensions [1]", "'='"),
    ],
)
def test_what_is_no_reduction_is_refused(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        read(f"{TENSORS}linalg.reduce {text}")


def test_memory_cannot_be_reduced_in_the_short_form() -> None:
    memory = "%m : memref<4xf32>"
    with pytest.raises(ParseError, match="a reduction of tensors, got memref<4xf32>"):
        read(
            "%m = memref.alloc() : memref<4xf32>\n"
            f"linalg.reduce {{ arith.addf }} ins({memory}) outs({memory}) dimensions = [0]"
        )
