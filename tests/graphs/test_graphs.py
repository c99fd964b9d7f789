"""Random programs of many operators are right in exact numerics; `python -m tests.graphs 500` tries more."""

from __future__ import annotations

from random import Random

import pytest
import torch

from tests.graphs.judge import judge, references
from tests.graphs.operators import OPERATORS
from tests.graphs.programs import Program, Step, random_program
from tests.graphs.shares import has_branch_and_join, is_unaligned

SEEDS = range(4)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_program(seed: int) -> None:
    verdict = judge(seed)
    assert verdict.status in ("ok", "refused"), verdict.detail


@pytest.mark.slow(reason="a hundred programs; the default run has a few")
@pytest.mark.parametrize("seed", range(1000, 1100))
def test_many_random_programs(seed: int) -> None:
    verdict = judge(seed)
    assert verdict.status in ("ok", "refused"), verdict.detail


def test_there_are_enough_operators() -> None:
    assert len(OPERATORS) >= 80


def stable(x: torch.Tensor, *names: str) -> list[bool]:
    """Which elements of a chain of operators the judge compares."""
    random = Random(0)
    steps = [Step(name, OPERATORS[name].draw(random, x), (n,)) for n, name in enumerate(names)]
    ((_, compared),) = references(Program(steps, [len(steps)]), (x,))
    return compared.reshape(-1).tolist()


def test_a_floor_reads_what_its_operand_was_rounded_to() -> None:
    """Halves of 0.01 are compared; 1 less 1e-4 is 1 in bfloat16, and a floor of that is 1 or 0."""
    x = torch.tensor([0.01, 9.0], dtype=torch.bfloat16)
    assert stable(x, "tanh", "floor") == [True, False]
    assert stable(x, "tanh", "frac") == [True, False]
    assert stable(x, "tanh", "square") == [True, True]


def test_a_number_that_is_not_rounded_is_compared_at_a_boundary() -> None:
    assert stable(torch.tensor([1, 2]), "half", "clone", "floor") == [True, True]


def test_a_sum_that_cancels_out_keeps_roundings() -> None:
    """The mean of deviations from the mean is 0 but for roundings; that of their squares is compared."""
    x = torch.tensor([0.1, 0.2, 0.4])
    assert stable(x, "minus_mean", "whole_sum") == [False]
    assert stable(x, "minus_mean", "square", "whole_sum") == [True]


def test_equal_numbers_stay_equal_under_other_roundings() -> None:
    """The largest of equal products is the first of them, whatever their roundings."""
    assert stable(torch.ones(2, 2, dtype=torch.int64), "float", "sigmoid", "argmax") == [True, True]


def test_shares_of_programs() -> None:

    def program(*reads: tuple[int, ...]) -> Program:
        return Program([Step("first", lambda x, *_, kinds: x, r) for r in reads], [len(reads)])

    chain, diamond, apart = program((0,), (1,), (2,)), program((0,), (0,), (1, 2)), program((0,), (0,))
    assert [has_branch_and_join(p, 1) for p in (chain, diamond, apart)] == [False, True, False]
    assert is_unaligned(chain, [torch.zeros(2, 63)])
    assert not is_unaligned(chain, [torch.zeros(3, 128)])


def test_enough_programs_branch_and_are_unaligned() -> None:
    drawn = [random_program(seed) for seed in range(40)]
    assert sum(has_branch_and_join(p, len(inputs)) for p, inputs in drawn) >= 8
    assert sum(is_unaligned(p, inputs) for p, inputs in drawn) >= 12
