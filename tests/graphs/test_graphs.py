"""Random programs of many operators are right in exact numerics; `python -m tests.graphs 500` tries more."""

from __future__ import annotations

import pytest

from tests.graphs.judge import judge
from tests.graphs.operators import OPERATORS

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
