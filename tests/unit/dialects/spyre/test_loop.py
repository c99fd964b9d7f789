"""Loop nests, gathers, empty tensors and constants: text, reductions by name, and what the verifiers refuse."""

from __future__ import annotations

import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    FloatAttr,
    IntegerAttr,
    IntegerType,
    Signedness,
    StringAttr,
    TensorType,
    UnitAttr,
    f16,
    f32,
    f64,
    i1,
    i64,
)
from xdsl.dialects.test import TestOp
from xdsl.ir import Attribute, Block, Region
from xdsl.utils.exceptions import ParseError, VerifyException

from spyre_mlir.dialects.spyre.attributes import IndexMapAttr, IterDim, SpaceAttr
from spyre_mlir.dialects.spyre.loop import (
    EmptyOp,
    LoopConstantOp,
    LoopGatherOp,
    NestOp,
    YieldOp,
    check_map,
    combiner,
    combining,
)
from spyre_mlir.hw.sticks import LinearExpr
from spyre_mlir.ops import ATEN
from spyre_mlir.ops.table import OpEntry
from tests.unit.dialects.texts import function, lines_of, only, read

ROW, COLUMN = LinearExpr.of("i"), LinearExpr.of("j")
SPACE = SpaceAttr((IterDim("i", 4), IterDim("j", 8)))


def entry(overload: str) -> OpEntry:
    found = ATEN.find(overload)
    assert found is not None
    return found


# --- reductions ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("overload", "floats", "integers", "truths"),
    [
        ("sum.dim_IntList", "arith.addf", "arith.addi", "arith.addi"),
        ("amax", "arith.maximumf", "arith.maxsi", "arith.maxui"),
        ("amin", "arith.minimumf", "arith.minsi", "arith.minui"),
    ],
)
def test_names_of_reductions(overload: str, floats: str, integers: str, truths: str) -> None:
    reduction = entry(overload)
    assert [combining(reduction, element) for element in (f16, f32)] == [floats] * 2
    assert combining(reduction, i64) == integers
    assert [combining(reduction, e) for e in (i1, IntegerType(8, Signedness.UNSIGNED))] == [truths] * 2
    assert [combiner(name) is reduction for name in (floats, integers, truths)] == [True] * 3


def test_what_folds_nothing() -> None:
    assert combining(entry("exp"), i64) is None
    with pytest.raises(VerifyException, match=r"no reduction folds with 'arith\.mulf'"):
        combiner("arith.mulf")


# --- maps ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("exprs", "shape"),
    [
        ((ROW, COLUMN), (4, 8)),
        ((), ()),
        ((LinearExpr(3, (("i", -1),)),), (4,)),
        ((LinearExpr(1, (("i", 2), ("j", 1))),), (15,)),  # 2 * 3 + 7 + 1 = 14
    ],
)
def test_maps_inside_of_their_tensor(exprs: tuple[LinearExpr, ...], shape: tuple[int, ...]) -> None:
    check_map(IndexMapAttr(exprs), shape, SPACE, "it")


@pytest.mark.parametrize(
    ("exprs", "shape", "space", "said"),
    [
        ((ROW,), (4, 8), SPACE, "it has rank 2, its map 1 expressions"),
        ((ROW, LinearExpr.of("k")), (4, 8), SPACE, "the map of it uses 'k', the space has i, j"),
        ((ROW,), (4,), SpaceAttr(()), "the map of it uses 'i', the space has no dimensions"),
        ((ROW, COLUMN), (4, 7), SPACE, "it: index j runs over 0 to 7, dimension 1 has 7"),
        ((LinearExpr(2, (("i", -1),)),), (4,), SPACE, r"it: index i \* -1 \+ 2 runs over -1 to 2, dimension 0 has 4"),
    ],
)
def test_maps_that_leave_their_tensor(
    exprs: tuple[LinearExpr, ...], shape: tuple[int, ...], space: SpaceAttr, said: str
) -> None:
    with pytest.raises(VerifyException, match=said):
        check_map(IndexMapAttr(exprs), shape, space, "it")


# --- nests --------------------------------------------------------------------------------------------------------

MATRIX, ROWS = "tensor<4x8xf32>", "tensor<4xf32>"
ARGUMENTS = f"%a: {MATRIX}, %b: {ROWS}"


def nest(head: str, body: str = "copy") -> list[str]:
    """A nest that copies, or adds its two inputs."""
    if body == "copy":
        return [f"%r = spyre.loop.nest {head} {{", "^bb0(%x: f32):", "spyre.loop.yield %x : f32", "}"]
    sum_of = "%z = arith.addf %x, %y : f32"
    return [f"%r = spyre.loop.nest {head} {{", "^bb0(%x: f32, %y: f32):", sum_of, "spyre.loop.yield %z : f32", "}"]


@pytest.mark.parametrize(
    "lines",
    [
        nest(f"[i = 4, j = 8] ins(%a[i, j] : {MATRIX}) -> [i, j] : {MATRIX}"),
        nest(f"[i = 4, j = 8] ins(%a[i, j] : {MATRIX}, %b[3 - i] : {ROWS}) -> [i, j] : {MATRIX}", "sum"),
        nest(f'[i = 4, j = 8] ins(%a[i, j] : {MATRIX}) -> [i] : {ROWS} reduce "arith.addf"'),
        nest(f"[i = 2] ins(%b[i + 2] : {ROWS}) into %b -> [i * 2] : {ROWS} attributes {{note}}"),
    ],
)
def test_text_of_nests(lines: list[str]) -> None:
    printed = lines_of(read(function(ARGUMENTS, *lines)))
    at = next(number for number, line in enumerate(printed) if "spyre.loop.nest" in line)
    head = lines[0].replace("%b[3 - i]", "%b[i * -1 + 3]")
    assert printed[at : at + len(lines)] == [head, *lines[1:]]


def test_parts_of_a_nest() -> None:
    head = f'[i = 4, j = 8] ins(%a[i, j] : {MATRIX}) into %b -> [i] : {ROWS} reduce "arith.addf" attributes {{note}}'
    op = only(read(function(ARGUMENTS, *nest(head))), NestOp)
    block = op.parent_block()
    assert block is not None
    assert list(op.inputs) == [block.args[0]]
    assert op.dest is block.args[1]
    assert op.space == SPACE
    assert (op.input_maps, op.output_map) == ((IndexMapAttr((ROW, COLUMN)),), IndexMapAttr((ROW,)))
    assert op.reduced == ("j",)
    assert op.combine == StringAttr("arith.addf")
    assert op.attributes == {"note": UnitAttr()}


def test_the_older_spelling_of_a_mark_is_refused() -> None:
    head = f"[i = 4, j = 8] ins(%a[i, j] : {MATRIX}) -> [i, j] : {MATRIX}"
    assert only(read(function(ARGUMENTS, *nest(f"{head} wide"))), NestOp).wide is not None
    with pytest.raises(VerifyException, match=r"'spyre.wide' of spyre.loop.nest .* expected the property 'wide'"):
        read(function(ARGUMENTS, *nest(f"{head} attributes {{spyre.wide}}")))


def copying(element: Attribute = f32) -> Region:
    block = Block(arg_types=[element])
    block.add_op(YieldOp.build(operands=[[block.args[0]]]))
    return Region(block)


A, B, D = TestOp(result_types=[TensorType(f32, [4, 8]), TensorType(f32, [4]), TensorType(f32, [5])]).results
BOTH, ROWS_ONLY = IndexMapAttr((ROW, COLUMN)), IndexMapAttr((ROW,))


def test_nests_are_made_without_text() -> None:
    plain = NestOp(SPACE, [A], [BOTH, BOTH], A.type, copying())
    plain.verify()
    assert (plain.combine, plain.dest, plain.reduced) == (None, None, ())
    folded = NestOp(SPACE, [A], [BOTH, ROWS_ONLY], B.type, copying(), combine="arith.maximumf", dest=B)
    folded.verify()
    assert (folded.combine, folded.dest, folded.result.type) == (StringAttr("arith.maximumf"), B, B.type)


@pytest.mark.parametrize(
    ("element", "combine"),
    [(f32, "arith.addf"), (f16, "arith.maximumf"), (i64, "arith.addi"), (i64, "arith.minsi"), (i1, "arith.minui")],
)
def test_reductions_that_a_nest_may_name(element: Attribute, combine: str) -> None:
    (given,) = TestOp(result_types=[TensorType(element, [4, 8])]).results
    NestOp(SPACE, [given], [BOTH, ROWS_ONLY], TensorType(element, [4]), copying(element), combine=combine).verify()


def negating_twice() -> Region:
    block = Block(arg_types=[f32])
    one = arith.NegfOp(block.args[0])
    two = arith.NegfOp(one.result)
    block.add_ops([one, two, YieldOp.build(operands=[[two.result]])])
    return Region(block)


@pytest.mark.parametrize(
    ("op", "said"),
    [
        (NestOp(SPACE, [A], [BOTH], A.type, copying()), "1 maps for 1 inputs and one result"),
        (NestOp(SPACE, [A], [BOTH, BOTH, BOTH], A.type, copying()), "3 maps for 1 inputs and one result"),
        (NestOp(SPACE, [D], [BOTH, BOTH], A.type, copying()), "input 0 has rank 1, its map 2 expressions"),
        (NestOp(SPACE, [A], [BOTH, ROWS_ONLY], A.type, copying()), "the result has rank 2, its map 1 expressions"),
        (NestOp(SPACE, [A], [BOTH, ROWS_ONLY], B.type, copying()), "j must be combined: the result's map lacks them"),
        (
            NestOp(SPACE, [A], [BOTH, ROWS_ONLY], B.type, copying(), combine="arith.mulf"),
            r"cannot combine with 'arith\.mulf', expected one of arith\.addf, arith\.maximumf",
        ),
        (
            NestOp(SPACE, [A], [BOTH, ROWS_ONLY], B.type, copying(), combine="arith.addf", dest=D),
            "the destination is tensor<5xf32>, the result tensor<4xf32>",
        ),
        (
            NestOp(SPACE, [A], [BOTH, BOTH], A.type, negating_twice()),
            "the body of a nest is one scalar operation",
        ),
    ],
)
def test_nests_that_contradict_themselves(op: NestOp, said: str) -> None:
    with pytest.raises(VerifyException, match=said):
        op.verify()


# --- gathers ------------------------------------------------------------------------------------------------------

GATHER_ARGUMENTS = "%ids: tensor<3xi64>, %t: tensor<4x8xf32>"


def gather(table: str = "0, h", axis: str = "0", rows: str = "s", result: str = "s, h") -> str:
    return (
        f"%r = spyre.loop.gather [s = 3, h = 8] rows(%ids[{rows}] : tensor<3xi64>) of axis {axis} "
        f"in %t[{table}] : tensor<4x8xf32> -> [{result}] : tensor<3x8xf32>"
    )


@pytest.mark.parametrize("more", ["", " from_end"])
def test_text_of_gathers(more: str) -> None:
    line = gather() + more
    module = read(function(GATHER_ARGUMENTS, line))
    assert line in lines_of(module)
    op = only(module, LoopGatherOp)
    maps = [(LinearExpr.of("s"),), (LinearExpr(), LinearExpr.of("h")), (LinearExpr.of("s"), LinearExpr.of("h"))]
    assert [index.data for index in op.maps] == maps
    again = LoopGatherOp(op.space, op.indices, op.table, 0, list(op.maps), op.result.type)
    again.from_end = op.from_end
    assert (again.properties, list(again.operands)) == (op.properties, list(op.operands))
    assert (op.from_end is not None) == bool(more)
    assert again.axis == IntegerAttr(0, i64)


def test_columns_are_gathered_too() -> None:
    line = (
        "%r = spyre.loop.gather [s = 3, h = 4] rows(%ids[s] : tensor<3xi64>) of axis 1 "
        "in %t[h, 0] : tensor<4x8xf32> -> [h, s] : tensor<4x3xf32>"
    )
    assert line in lines_of(read(function(GATHER_ARGUMENTS, line)))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (gather(table="s, h"), "axis 0 must be a dimension of the table whose expression is 0"),
        (gather(axis="1"), "axis 1 must be a dimension of the table whose expression is 0"),
        (gather(axis="2"), "axis 2 must be a dimension of the table whose expression is 0"),
        (gather(axis="-1"), "axis -1 must be a dimension of the table whose expression is 0"),
        (gather(rows="s + 1"), r"the indices: index s \+ 1 runs over 1 to 3, dimension 0 has 3"),
        (gather(table="4, h"), "the table: index 4 runs over 4 to 4, dimension 0 has 4"),
        (gather(result="h"), "the result has rank 2, its map 1 expressions"),
    ],
)
def test_gathers_that_contradict_themselves(line: str, said: str) -> None:
    with pytest.raises(VerifyException, match=said):
        read(function(GATHER_ARGUMENTS, line))


def test_a_gather_has_three_maps() -> None:
    op = only(read(function(GATHER_ARGUMENTS, gather())), LoopGatherOp)
    with pytest.raises(VerifyException, match="a gather has 3 maps, got 2"):
        LoopGatherOp(op.space, op.indices, op.table, 0, list(op.maps)[:2], op.result.type).verify()


def test_the_axis_of_a_gather_is_a_number() -> None:
    with pytest.raises(ParseError):
        read(function(GATHER_ARGUMENTS, gather(axis="true")))


# --- tensors of their own -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "%e = spyre.loop.empty : tensor<4xf32>",
        "%c = spyre.loop.constant 1.500000e+00 : f64 : tensor<4xf32>",
        "%c = spyre.loop.constant #spyre.iota<0.0, 1.0> {note} : tensor<4xf32>",
    ],
)
def test_text_of_tensors_without_inputs(line: str) -> None:
    assert line in lines_of(read(function("", line)))


def test_tensors_without_inputs_are_made_without_text() -> None:
    empty, constant = EmptyOp(B.type), LoopConstantOp(FloatAttr(2.0, f64), B.type)
    assert (empty.result.type, constant.result.type, constant.value) == (B.type, B.type, FloatAttr(2.0, f64))
    empty.verify()
    constant.verify()
