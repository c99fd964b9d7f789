"""Values that cores give each other: text, constructors, and what the verifiers refuse."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import AffineSetAttr, IndexType, TensorType, f16
from xdsl.dialects.test import TestOp
from xdsl.ir import Attribute, Block, Region
from xdsl.ir.affine import AffineConstraintExpr, AffineConstraintKind, AffineExpr, AffineSet
from xdsl.utils.exceptions import ParseError, VerifyException

from spyre_mlir.dialects.ktdp.affine import box_set, set_text
from spyre_mlir.dialects.ktdp.attributes import TileFutureType
from spyre_mlir.dialects.ktdp.cores import (
    InterTileProduceOp,
    InterTileReduceOp,
    YieldPartialOp,
    YieldReducedOp,
    _future,
    _require_region,
)
from tests.unit.dialects.texts import function, lines_of, only, read

MEMBERS = "affine_set<(d0)[s0] : (d0 >= 0, -d0 + s0 >= 0)>"
GROUPS = "affine_set<(d0) : (d0 == 0)>"
FUTURE = f"!ktdp.tile_future<tensor<4xf16>, groups = {GROUPS}>"
ARGUMENTS = "%x: tensor<4xf16>, %y: tensor<8xf16>"


def produce(
    members: str = MEMBERS,
    future: str = FUTURE,
    block: str = "%g: index",
    end: str = "%x : tensor<4xf16>",
    more: str = "",
) -> list[str]:
    return [
        f"%f = ktdp.inter_tile_produce producer_tiles_per_group = {members}{more} : tensor<4xf16> -> {future} {{",
        f"^bb0({block}):",
        f"ktdp.yield_partial {end}",
        "}",
    ]


def reduce(
    members: str = MEMBERS,
    identity: str = "%x : tensor<4xf16>",
    future: str = FUTURE,
    result: str = "tensor<4xf16>",
    block: str = "%a: tensor<4xf16>, %b: tensor<4xf16>",
    more: str = "",
) -> list[str]:
    operands = f"(%f) consumer_tiles_per_group = {members}, identity({identity})"
    return [
        f"%r = ktdp.inter_tile_reduce{operands}{more} : {future} -> {result} {{",
        f"^bb0({block}):",
        "ktdp.yield_reduced %a : tensor<4xf16>",
        "}",
    ]


@pytest.mark.parametrize("more", ["", " {note}"])
def test_text(more: str) -> None:
    end = f"%x{more} : tensor<4xf16>"
    given = [*produce(more=more, end=end), *reduce(more=more)]
    lines = lines_of(read(function(ARGUMENTS, *given)))
    first = next(number for number, line in enumerate(lines) if "inter_tile_produce" in line)
    # A block that has no name of its own is numbered on.
    assert [line.replace("^bb1", "^bb0") for line in lines[first : first + 8]] == given


def test_forms_of_the_newest_front_end() -> None:
    short = FUTURE.removeprefix("!ktdp.tile_future").replace("tensor<4xf16>,", "(tensor<4xf16>),")
    given = [*produce(future=short), *reduce(future=short)]
    given[0] = given[0].replace(" : tensor<4xf16> ->", " ->")
    module = read(function(ARGUMENTS, *given))
    assert module.is_structurally_equivalent(read(function(ARGUMENTS, *produce(), *reduce())))


MAP = "affine_map<(d0) -> (d0)>"


@pytest.mark.parametrize(("lines", "who"), [(produce(MAP), "producer"), ([*produce(), *reduce(MAP)], "consumer")])
def test_members_are_a_set(lines: list[str], who: str) -> None:
    with pytest.raises(ParseError, match=f"{who}_tiles_per_group: expected an affine_set, got affine_map"):
        read(function(ARGUMENTS, *lines))


def test_members_have_their_expressions_in_one_order() -> None:
    turned = "affine_set<(d0)[s0] : (0 + d0 >= 0, s0 >= d0)>"
    module = read(function(ARGUMENTS, *produce(turned), *reduce(turned)))
    assert set_text(only(module, InterTileProduceOp).producer_tiles_per_group.data) == MEMBERS
    assert set_text(only(module, InterTileReduceOp).consumer_tiles_per_group.data) == MEMBERS


AGAIN = [line.replace("%r", "%again") for line in reduce()]
NOT_MEMBERS = "affine_set<(d0) : (d0 >= 0)>"
TWO_DIMS = "affine_set<(d0, d1)[s0] : (d0 >= 0)>"


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (produce(NOT_MEMBERS), r"producer_tiles_per_group is a set of cores of a group, \(i\)\[g\] : \(\.\.\.\), got"),
        (produce(TWO_DIMS), "producer_tiles_per_group is a set of cores"),
        (produce(block="%g: tensor<4xf16>"), r"the block takes \(index\), got \(tensor<4xf16>\)"),
        (produce(end="%y : tensor<8xf16>"), r"ktdp\.yield_partial gives tensor<4xf16>, got tensor<8xf16>"),
        (produce(), "a future is taken by exactly one op, this one by 0"),
        (
            [*produce(), *reduce(), *(line.replace("%r", "%s") for line in reduce())],
            "a future is taken by exactly one op, this one by 2",
        ),
        ([*produce(), *reduce(NOT_MEMBERS)], "consumer_tiles_per_group is a set of cores of a group"),
        (
            [*produce(), *reduce(identity="%y : tensor<8xf16>")],
            "the future carries tensor<4xf16>, the identity is tensor<8xf16>",
        ),
        (
            [*produce(), *reduce(result="tensor<8xf16>")],
            "carries tensor<4xf16>, the result is tensor<8xf16>",
        ),
        (
            [*produce(), *reduce(result="tensor<4xf32>")],
            "carries tensor<4xf16>, the result is tensor<4xf32>",
        ),
        (
            [*produce(), *reduce(block="%a: tensor<4xf16>")],
            r"the block takes \(tensor<4xf16>, tensor<4xf16>\), got \(tensor<4xf16>\)",
        ),
    ],
)
def test_groups_that_do_not_go_together(lines: list[str], said: str) -> None:
    with pytest.raises(VerifyException, match=said):
        read(function(ARGUMENTS, *lines))


@pytest.mark.parametrize("lines", [produce(), reduce()])
def test_the_grid_around_is_one_of_the_card(lines: list[str]) -> None:
    arguments = f"{ARGUMENTS}, %f: {FUTURE}" if "reduce" in lines[0] else ARGUMENTS
    with pytest.raises(VerifyException, match=r"grid \[64\] has 64 cores, the card has 32"):
        read(function(arguments, *lines, grid="[64]"))


@pytest.mark.parametrize("result", ["tensor<1x4xf16>", "tensor<4x1x1xf16>"])
def test_a_result_may_have_other_dimensions_of_one(result: str) -> None:
    read(function(ARGUMENTS, *produce(), *reduce(result=result)))


KIND = TensorType(f16, [4])
SET = AffineSetAttr(
    AffineSet(1, 1, (AffineConstraintExpr(AffineConstraintKind.ge, AffineExpr.dimension(0), AffineExpr.constant(0)),))
)
ONE = box_set([1])


def ending_in(last: type[YieldPartialOp | YieldReducedOp] | None, *arguments: Attribute, blocks: int = 1) -> Region:
    """A region of blocks that each yield a tensor, or end in nothing."""
    made: list[Block] = []
    for _ in range(blocks):
        value = TestOp(result_types=[KIND])
        made.append(Block([value, *([] if last is None else [last(value)])], arg_types=arguments))
    return Region(made)


def test_ops_are_made_without_text() -> None:
    body = ending_in(YieldPartialOp, IndexType())
    made = InterTileProduceOp(SET, KIND, ONE, body)
    assert made.body is body
    assert (made.future.type, made.producer_tiles_per_group) == (TileFutureType(KIND, ONE), SET)
    (neutral,) = TestOp(result_types=[KIND]).results
    combiner = ending_in(YieldReducedOp, KIND, KIND)
    taken = InterTileReduceOp(made, neutral, SET, combiner)
    assert taken.combiner is combiner
    assert (taken.future, taken.identity, taken.result.type) == (made.future, neutral, KIND)
    made.verify()
    taken.verify()


def test_blocks_that_are_still_to_be_filled() -> None:
    made = InterTileProduceOp(SET, KIND, ONE)
    (neutral,) = TestOp(result_types=[KIND]).results
    taken = InterTileReduceOp(made, neutral, SET)
    assert [argument.type for argument in made.body.block.args] == [IndexType()]
    assert [argument.type for argument in taken.combiner.block.args] == [KIND, KIND]
    with pytest.raises(VerifyException, match=r"the block ends with ktdp\.yield_partial"):
        made.verify_()
    with pytest.raises(VerifyException, match=r"the block ends with ktdp\.yield_reduced"):
        taken.verify_()


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (ending_in(None, IndexType()), r"the block ends with ktdp\.yield_partial"),
        (ending_in(YieldReducedOp, IndexType()), r"the block ends with ktdp\.yield_partial"),
        (ending_in(YieldPartialOp, IndexType(), blocks=2), "the region has one block"),
        (Region(), "the region has one block"),
    ],
)
def test_a_region_is_one_block_that_yields(body: Region, said: str) -> None:
    with pytest.raises(VerifyException, match=said):
        _require_region(body, [IndexType()], YieldPartialOp.name, KIND)


def test_only_a_future_is_reduced() -> None:
    (value,) = TestOp(result_types=[KIND]).results
    with pytest.raises(VerifyException, match="expected a future, got tensor<4xf16>"):
        _future(value)


def test_a_partial_result_is_yielded_to_its_producer() -> None:
    with pytest.raises(VerifyException, match=r"'ktdp\.yield_partial' expects parent op 'ktdp\.inter_tile_produce'"):
        read(function(ARGUMENTS, "ktdp.yield_partial %x : tensor<4xf16>").replace("func.return\n", ""))
    with pytest.raises(VerifyException, match=r"'ktdp\.yield_reduced' expects parent op 'ktdp\.inter_tile_reduce'"):
        read(function(ARGUMENTS, "ktdp.yield_reduced %x : tensor<4xf16>").replace("func.return\n", ""))
