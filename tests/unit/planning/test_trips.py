"""Trip counts that are worth a try, by hand."""

from __future__ import annotations

from spyre_mlir.planning.trips import LoopChoice, worth_trying


def test_counts_are_divisors_within_the_limit() -> None:
    assert LoopChoice(12).counts(65_535) == [1, 2, 3, 4, 6, 12]
    assert LoopChoice(12).counts(5) == [1, 2, 3, 4]
    assert LoopChoice(65_537).counts(65_535) == [1]


def test_one_loop_about_what_fits() -> None:
    # Seven trips would fit: 8 and 16 are tried, 4 below, and single rows at the end.
    assert worth_trying(LoopChoice(64), None, 7, 65_535) == [(4, 1), (8, 1), (16, 1), (64, 1)]
    # Where everything fits as it is, only the shortest loop and the longest.
    assert worth_trying(LoopChoice(64), None, 1, 65_535) == [(2, 1), (64, 1)]
    assert worth_trying(LoopChoice(1), None, 7, 65_535) == []


def test_two_loops_share_the_trips() -> None:
    found = worth_trying(LoopChoice(4), LoopChoice(8), 8, 65_535)
    assert found == [(2, 2), (2, 4), (2, 8), (4, 2), (4, 4)]
    assert all(first > 1 and second > 1 for first, second in found)
    # A bundle's loop makes no more trips than it can count.
    assert worth_trying(LoopChoice(4), LoopChoice(8), 8, 8) == [(2, 2), (2, 4), (4, 2)]
