"""Placement where first fit leaves buffers out: small cases by hand and by brute force, and captured problems."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from spyre_mlir.hw.placement import Pair, Request, collisions, first_fit, peak
from spyre_mlir.planning.scratchpad import choose, place
from tests.paths import ROOT


def request(number: int, size: int, first: int, last: int, saved: int = 1, address: int | None = None) -> Request:
    return Request(number=number, size=size, first=first, last=last, saved=saved, address=address)


def saved(requests: Sequence[Request], addresses: Collection[int]) -> int:
    return sum(r.saved for r in requests if r.number in addresses)


def test_first_fit_has_the_word_where_it_leaves_nothing_out() -> None:
    requests = [request(0, 256, 0, 9), request(1, 128, 1, 3), request(2, 128, 4, 6)]
    assert place(requests, 1024) == first_fit(requests, 1024) == {0: 0, 1: 256, 2: 256}


def test_a_buffer_that_first_fit_leaves_out() -> None:
    """By order of what they save 0 lies at 0, 1 on it, and 2 at 0 again; 3 then finds no two bytes side by side."""
    requests = [request(0, 1, 0, 2, 9), request(1, 1, 2, 4, 8), request(2, 1, 4, 6, 7), request(3, 2, 3, 3, 1)]
    assert first_fit(requests, 3) == {0: 0, 1: 1, 2: 0}
    found = place(requests, 3)
    assert set(found) == {0, 1, 2, 3}
    assert not collisions(requests, found) and peak(requests, found) <= 3


def test_two_that_save_more_than_the_one_that_chooses_first() -> None:
    requests = [request(0, 3, 0, 4, 5), request(1, 2, 0, 1, 4), request(2, 2, 2, 4, 3)]
    assert first_fit(requests, 4) == {0: 0}
    assert place(requests, 4) == {1: 0, 2: 0}


def test_an_address_that_is_taken_over_saves_room() -> None:
    """At time 2 there are 2 + 2 + 3 bytes alive, or 2 + 3 if 1 takes over the address of 0."""
    requests = [request(0, 2, 0, 2, 8), request(1, 2, 2, 4, 8), request(2, 3, 0, 4, 5)]
    assert choose(requests, 5).saved == 16
    assert choose(requests, 5, {(0, 1)}).taken == {0: None, 1: 0, 2: None}
    found = place(requests, 5, {(0, 1)})
    assert set(found) == {0, 1, 2} and found[0] == found[1]


def test_nothing_takes_over_an_address_at_the_time_of_its_own_birth() -> None:
    """0, 1 and 2 are alive at time 2: in place of each other, three would share an address."""
    requests = [request(0, 2, 0, 2), request(1, 2, 2, 2), request(2, 2, 2, 4)]
    pairs = {(0, 1), (1, 2)}
    assert choose(requests, 4, pairs).taken == {0: None, 1: 0, 2: None}
    assert not collisions(requests, place(requests, 4, pairs), pairs)


def test_addresses_of_the_program_are_kept() -> None:
    requests = [request(0, 2, 0, 4, 1, address=1), request(1, 2, 0, 4, 5)]
    assert place(requests, 4) == {0: 1}


def test_sets_that_are_given_up_are_said() -> None:
    requests = [request(n, 1, 0, 9, n + 1) for n in range(6)]
    assert choose(requests, 3).exact and choose(requests, 3).saved == 15
    assert not choose(requests, 3, most=2).exact


def test_no_steps_leave_first_fits_placement() -> None:
    requests = [request(0, 3, 0, 4, 5), request(1, 2, 0, 1, 4), request(2, 2, 2, 4, 3)]
    assert place(requests, 4, steps=0) == {0: 0}


def test_a_choice_that_cannot_be_packed_leaves_first_fits_placement() -> None:
    """Seven buffers with at most 4 bytes alive that no arrangement packs into 4 bytes: the cheapest one has to go."""
    lives = [(1, 3, 1), (5, 5, 2), (4, 6, 2), (0, 2, 2), (0, 0, 2), (1, 4, 1), (3, 4, 1)]
    requests = [request(n, size, first, last, 10 + n) for n, (first, last, size) in enumerate(lives)]
    assert choose(requests, 4).saved == 91
    found = place(requests, 4)
    assert found == first_fit(requests, 4)
    assert saved(requests, found) == 81


def arrangements(requests: Sequence[Request], capacity: int) -> Iterator[dict[int, int]]:
    """Every placement of every choice, legal or not."""
    for at in product(*([None, *range(capacity - r.size + 1)] for r in requests)):
        yield {r.number: a for r, a in zip(requests, at, strict=True) if a is not None}


REQUESTS = st.lists(
    st.tuples(st.integers(1, 3), st.integers(0, 4), st.integers(0, 3), st.integers(1, 5)), min_size=2, max_size=5
)


@given(REQUESTS, st.integers(2, 4), st.sets(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=6))
def test_no_placement_saves_more_than_the_choice(
    drawn: list[tuple[int, int, int, int]], capacity: int, pairs: set[Pair]
) -> None:
    requests = [request(n, size, first, first + length, pays) for n, (size, first, length, pays) in enumerate(drawn)]
    # place-lx offers no buffer whose first write is its last use.
    pairs = {(a, b) for a, b in pairs if a < len(drawn) > b and requests[a].first < requests[a].last}
    found = place(requests, capacity, pairs)
    assert not collisions(requests, found, pairs) and peak(requests, found) <= capacity
    assert saved(requests, found) >= saved(requests, first_fit(requests, capacity, pairs))
    bound = choose(requests, capacity, pairs)
    legal = (at for at in arrangements(requests, capacity) if not collisions(requests, at, pairs))
    best = max(saved(requests, at) for at in legal)
    assert saved(requests, found) <= best <= bound.saved
    if not pairs:
        assert bound.exact and saved(requests, found) == best


def problems() -> dict[str, tuple[list[Request], set[Pair]]]:
    """Requests of place-lx by model, and the pairs that may share an address."""
    found = defaultdict[str, tuple[list[Request], set[Pair]]](lambda: ([], set()))
    with (ROOT / "benchmarks" / "data" / "lx_requests.csv").open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            requests, takeovers = found[row["model"]]
            number, size, first, last, pays = (int(row[k]) for k in ("number", "size", "first", "last", "saved"))
            requests.append(request(number, size, first, last, pays))
            takeovers |= {(int(dying), number) for dying in row["takes_over"].split()}
    return found


def test_captured_problems_are_within_two_percent_of_the_best() -> None:
    """The best ones are those of another solver, with its proof; `left` is what stays in device memory, in sticks."""
    captured = problems()
    assert len(captured) >= 40
    with (ROOT / "benchmarks" / "data" / "lx_optima.csv").open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    assert len(rows) >= 100
    for row in rows:
        requests, takeovers = captured[row["model"]]
        found = place(requests, int(row["capacity"]), takeovers)
        assert not collisions(requests, found, takeovers) and peak(requests, found) <= int(row["capacity"])
        left = sum(r.saved for r in requests) - saved(requests, found)
        assert left >= int(row["left"]), row
        assert left <= 1.02 * int(row["left"]), row
