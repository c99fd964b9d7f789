"""Which new values of arguments are written in place: those of one entry, of which nobody reads the old value."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from spyre_mlir.dialects.spyre.loop_blocks import BlockOp, NamedEntry, PutOp
from spyre_mlir.dialects.tensors import shape_of
from spyre_mlir.frontend import import_program
from spyre_mlir.pipeline import lower
from spyre_mlir.universe import make_context
from tests.unit.transforms.levels import ops

Written = Callable[[Tensor, Tensor, Tensor], Tensor]


class Writes(nn.Module):
    """A function of a cache, a position and what is written there."""

    def __init__(self, function: Written) -> None:
        super().__init__()
        self.function = function

    def forward(self, cache: Tensor, at: Tensor, new: Tensor) -> Tensor:
        return self.function(cache, at, new)


def updates(function: Written, length: int = 128, count: int = 1, *, kind: torch.dtype = torch.float16) -> list[PutOp]:
    """What is put back in the program at the loop level, which is verified."""
    cache, new = torch.zeros(2, length, 64, dtype=kind), torch.zeros(2, count, 64, dtype=kind)
    program = import_program(Writes(function), (cache, torch.zeros(count, dtype=torch.long), new))
    module = lower(program.module, make_context(), until="spyre.loop").modules["spyre.loop"]
    return ops(module, PutOp)


def copied(cache: Tensor, at: Tensor, new: Tensor) -> Tensor:
    return cache.index_copy_(1, at, new).sum()


def test_one_position_is_written_in_its_block() -> None:
    (put,) = updates(copied)
    assert put.dim.value.data == 1
    assert shape_of(put.block) == (2, 64, 64)
    assert {type(use.operation) for use in put.dest.uses} == {BlockOp, PutOp}


def test_other_readers_of_the_old_value_keep_it() -> None:
    def both(cache: Tensor, at: Tensor, new: Tensor) -> Tensor:
        return cache.clone().exp() + cache.index_copy_(1, at, new)

    assert not updates(both)


@pytest.mark.parametrize("length", [100, 63])
def test_blocks_divide_the_dimension(length: int) -> None:
    assert not updates(copied, length)


def test_several_positions_make_a_tensor() -> None:
    assert not updates(copied, count=2)


def behind(index: Callable[[Tensor], Tensor]) -> list[int]:
    """By how much entries that are written are behind the position; a program that makes a tensor has none."""

    def function(cache: Tensor, at: Tensor, new: Tensor) -> Tensor:
        return cache.index_copy_(1, index(at), new).sum()

    return [NamedEntry.of(put).offset for put in updates(function)]


def test_a_position_that_the_program_computes_is_none_of_the_hosts() -> None:
    assert not behind(lambda at: at * 2)
    assert not behind(lambda at: at + at)


def test_a_position_may_be_a_known_number_behind_an_argument() -> None:
    assert behind(lambda at: at) == [0]
    assert behind(lambda at: at + 3) == [3]
    assert behind(lambda at: torch.arange(1) + (at + 2) + 1) == [3]


def test_positions_that_may_wrap_make_a_tensor() -> None:
    assert behind(lambda at: at.int().long()) == [0]
    assert not behind(lambda at: at.to(torch.int8).long())


def test_whole_numbers_make_a_tensor() -> None:
    """They are written by another comparison, which may have hits in several blocks."""
    assert not updates(copied, kind=torch.int64)


def test_a_choice_by_other_numbers_makes_a_tensor() -> None:
    """Indices from 1 on name another entry than the position."""

    def shifted(cache: Tensor, at: Tensor, new: Tensor) -> Tensor:
        here = torch.arange(1, cache.shape[1] + 1) == at
        cache.copy_(torch.where(here.view(1, -1, 1), new, cache))
        return cache.sum()

    def before(cache: Tensor, at: Tensor, new: Tensor) -> Tensor:
        here = torch.arange(cache.shape[1]) <= at
        cache.copy_(torch.where(here.view(1, -1, 1), new, cache))
        return cache.sum()

    assert not updates(shifted)
    assert not updates(before)
