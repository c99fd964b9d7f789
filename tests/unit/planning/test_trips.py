"""Trip counts that are worth a try, by hand."""

from __future__ import annotations

from spyre_mlir.planning.trips import LoopChoice, TripSpan, shared_equally, worth_trying


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


def test_a_block_is_a_part_of_an_extent() -> None:
    assert TripSpan.of_all(4).extent(100) == 25
    assert TripSpan(3, 32, 100).extent(12_800) == 4096
    assert TripSpan(1, 4, 100, start=96).extent(12_800) == 512


def test_the_index_of_a_loop_counts_in_units_that_divide_start_and_size() -> None:
    assert (TripSpan(3, 32, 96).bounds, TripSpan(3, 32, 96).stride(12_288)) == ((0, 3, 1), 4096)
    # 24 pieces from piece 64 on, at 8 times 8: one trip that goes 3 units further.
    behind = TripSpan(1, 24, 88, start=64)
    assert behind.bounds == (8, 11, 3)
    assert (behind.stride(5632), behind.extent(5632)) == (512, 1536)


def test_all_cores_have_as_many_pieces_and_the_remainder_follows() -> None:
    behind = TripSpan(1, 4, 100, start=96)
    # 96 of 100 pieces in one trip, or in three; two do not divide them.
    assert shared_equally(100, 32, 1) == [(TripSpan(1, 96, 100), behind)]
    assert shared_equally(100, 32, 2) == [(TripSpan(1, 96, 100), behind), (TripSpan(3, 32, 100), behind)]
    assert shared_equally(100, 32, 3) == [(TripSpan(1, 96, 100), behind), (TripSpan(3, 32, 100), behind)]
    # The remainder is one block, which need not divide what is before it.
    assert shared_equally(86, 32, 1)[0][1] == TripSpan(1, 22, 86, start=64)
    assert shared_equally(96, 32, 1) == shared_equally(20, 32, 1) == []
    # Eight cores may make each of the four pieces, for an eighth of 512 rows; 12 rows have six equal parts at most.
    for rows, copies in (512, 8), (12, 6), (7, 7), (11, 1):
        found = [last.copies for _, last in shared_equally(100, 32, 1, rows)]
        assert found == ([1, copies] if copies > 1 else [1])
    for many, few in shared_equally(75, 16, 4):
        rows = [n for s in (many, few) for at in range(*s.bounds) for n in range(at * s.unit, at * s.unit + s.size)]
        assert rows == list(range(75))
