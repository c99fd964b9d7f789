"""Blocks of the loop level: their shapes, and positions that are none."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import TensorType, f16, i1, i64
from xdsl.ir import Block, SSAValue
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.dialects.spyre.loop_blocks import BlockOp, NamedEntry, PutOp, block_shape, check_position
from spyre_mlir.dialects.tensors import shape_of


def value(*shape: int, element: object = f16) -> SSAValue:
    return Block(arg_types=[TensorType(element, shape)]).args[0]  # pyright: ignore[reportArgumentType]


def test_a_block_has_fewer_entries_of_its_dimension() -> None:
    assert block_shape((2, 256, 8), 1, 64) == (2, 64, 8)
    block = BlockOp(value(2, 256, 8), 1, value(1, element=i64), 64)
    block.verify()
    assert shape_of(block.result) == (2, 64, 8)


def test_a_block_goes_back_to_where_it_is_from() -> None:
    whole, position = value(2, 256), value(1, element=i64)
    put = PutOp(BlockOp(whole, 1, position, 64).result, whole, 1, position)
    put.verify()
    assert put.result.type == whole.type
    with pytest.raises(VerifyException, match=r"a block of tensor<2x256xf16> along dimension 0 cannot be"):
        PutOp(value(2, 64), whole, 0, position).verify()


@pytest.mark.parametrize("position", [value(2, element=i64), value(1)])
def test_a_position_is_one_integer(position: SSAValue) -> None:
    with pytest.raises(VerifyException, match="expected a tensor of one integer"):
        check_position(position)


@pytest.mark.parametrize("number", [2, -1])
def test_one_of_several_positions(number: int) -> None:
    whole, positions = value(8, 64), value(2, 1, element=i64)
    block = BlockOp(whole, 0, positions, 1, NamedEntry(number=1, per=64, from_end=True))
    block.verify()
    assert NamedEntry.of(block) == NamedEntry(number=1, per=64, from_end=True)
    with pytest.raises(VerifyException, match="expected integers, more than"):
        BlockOp(whole, 0, positions, 1, NamedEntry(number=number)).verify()
    with pytest.raises(VerifyException, match="entries of 0 places"):
        BlockOp(whole, 0, positions, 1, NamedEntry(number=0, per=0)).verify()


def test_a_run_is_in_one_entry_and_has_all_its_positions() -> None:
    whole, positions = value(8, 64), value(70, element=i64)
    named = NamedEntry(number=6, per=64, run=64)
    block = BlockOp(whole, 0, positions, 1, named)
    block.verify()
    assert NamedEntry.of(block) == named
    with pytest.raises(VerifyException, match="expected integers, more than 70"):
        BlockOp(whole, 0, positions, 1, NamedEntry(number=7, per=64, run=64)).verify()
    for run in (0, 65):
        with pytest.raises(VerifyException, match=f"runs of {run} places in entries of 64"):
            BlockOp(whole, 0, positions, 1, NamedEntry(number=0, per=64, run=run)).verify()


def test_a_dimension_that_is_none() -> None:
    with pytest.raises(VerifyException, match="dimension 2 of a tensor of rank 2"):
        PutOp(value(2, 64), value(2, 256), 2, value(1, element=i64)).verify()
    check_position(value(1, 1, element=i1))
