"""Placement on plain integers, against drawings of the scratchpad made by hand and by brute force."""

from __future__ import annotations

from collections.abc import Collection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spyre_mlir.hw import placement
from spyre_mlir.hw.placement import Pair, Request, collisions, first_fit, peak


def request(number: int, size: int, first: int, last: int, saved: int = 0, address: int | None = None) -> Request:
    return Request(number=number, size=size, first=first, last=last, saved=saved, address=address)


def test_the_lowest_address_that_is_free_for_the_whole_life() -> None:
    # 0 lives to the end; 2 begins when 1 is over and fits where 1 was.
    requests = [request(0, 256, 0, 9), request(1, 128, 1, 3), request(2, 128, 4, 6)]
    assert first_fit(requests, 1024) == {0: 0, 1: 256, 2: 256}


def test_the_lowest_of_several_gaps_is_taken_whatever_the_order_of_what_is_there() -> None:
    held = [request(number, 128, 0, 9, address=address) for number, address in enumerate((4096, 2048, 0))]
    for there in (held, held[::-1]):
        assert first_fit([*there, request(3, 128, 0, 9)], 8192)[3] == 128
        assert first_fit([*there, request(3, 1920, 0, 9)], 8192)[3] == 128
        assert first_fit([*there, request(3, 1921, 0, 9)], 8192)[3] == 4096 + 128


def test_alive_at_one_point_is_alive_together() -> None:
    assert first_fit([request(0, 128, 0, 4), request(1, 128, 4, 6)], 1024) == {0: 0, 1: 128}


def test_a_result_takes_over_the_address_of_the_operand_that_dies() -> None:
    requests = [request(0, 128, 0, 9), request(1, 512, 0, 4), request(2, 512, 4, 6)]
    assert first_fit(requests, 640, takeovers={(1, 2)}) == {0: 0, 1: 128, 2: 128}
    assert first_fit(requests, 640) == {0: 0, 1: 128}


def test_no_takeover_of_another_size_or_of_a_longer_life() -> None:
    assert first_fit([request(0, 256, 0, 4), request(1, 128, 4, 6)], 256, {(0, 1)}) == {0: 0}
    assert first_fit([request(0, 128, 0, 5), request(1, 128, 4, 6)], 128, {(0, 1)}) == {0: 0}


def test_what_pays_most_chooses_first() -> None:
    requests = [request(0, 128, 0, 9, saved=1), request(1, 256, 0, 9, saved=5), request(2, 256, 0, 9, saved=4)]
    assert first_fit(requests, 256) == {1: 0}
    assert first_fit(requests, 512) == {1: 0, 2: 256}
    assert first_fit(requests, 400) == {1: 0, 0: 256}


def test_a_given_address_is_kept_and_avoided() -> None:
    requests = [request(0, 128, 0, 9, saved=9), request(1, 128, 3, 5, address=0)]
    assert first_fit(requests, 1024) == {1: 0, 0: 128}


def test_collisions_name_the_pair() -> None:
    requests = [request(0, 256, 0, 4), request(1, 256, 4, 6), request(2, 256, 6, 8)]
    assert collisions(requests, {0: 0, 1: 128, 2: 256}) == [(0, 1), (1, 2)]
    assert collisions(requests, {0: 0, 1: 0, 2: 256}, {(0, 1)}) == []
    assert collisions(requests, {0: 0, 1: 128, 2: 512}, {(0, 1)}) == [(0, 1)], "same bytes or none"


def test_first_fit_looks_at_those_alone_that_are_alive_together(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []
    real = placement.may_share

    def count(one: Request, other: Request, takeovers: Collection[Pair]) -> bool:
        looks.append(one.number)
        return real(one, other, takeovers)

    monkeypatch.setattr(placement, "may_share", count)
    always = request(0, 128, 0, 2000, saved=9)
    first_fit([always, *(request(n, 128, 2 * n, 2 * n + 1) for n in range(1, 1000))], 1024)
    assert set(looks) == {0}


def test_peak_is_the_highest_byte() -> None:
    requests = [request(0, 256, 0, 4), request(1, 128, 5, 6)]
    assert peak(requests, {0: 128, 1: 0}) == 384
    assert peak(requests, {}) == 0


SIZES = st.integers(1, 4).map(lambda n: 128 * n)


@given(st.lists(st.tuples(SIZES, st.integers(0, 12), st.integers(0, 5), st.integers(0, 3)), max_size=12))
def test_nobody_shares_a_byte(drawn: list[tuple[int, int, int, int]]) -> None:
    """A map of stick and time holds at most one buffer everywhere, and who has no place would fit nowhere."""
    requests = [request(n, size, first, first + length, saved) for n, (size, first, length, saved) in enumerate(drawn)]
    addresses = first_fit(requests, 1024)
    cells: dict[tuple[int, int], int] = {}
    for r in requests:
        if r.number not in addresses:
            continue
        assert addresses[r.number] % 128 == 0
        assert addresses[r.number] + r.size <= 1024
        for stick in range(addresses[r.number] // 128, (addresses[r.number] + r.size) // 128):
            for time in range(r.first, r.last + 1):
                assert cells.setdefault((stick, time), r.number) == r.number
    for r in requests:
        if r.number not in addresses:
            for low in range(8 - r.size // 128 + 1):
                used = [(low + s, t) in cells for s in range(r.size // 128) for t in range(r.first, r.last + 1)]
                assert any(used), "a free place was not used"
    assert collisions(requests, addresses) == []
