"""Exact packing: published hard problems, and small ones against all addresses there are."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spyre_mlir.planning.packing import Buffer, live_peak, pack
from tests.paths import TESTS

HARD_BYTES = 1_048_576


def apart(buffers: Sequence[Buffer], addresses: Sequence[int], capacity: int) -> bool:
    """Whether all lie inside, and no two that live at one time share a byte."""
    placed = list(zip(buffers, addresses, strict=True))
    inside = all(at >= 0 and at + b.size <= capacity for b, at in placed)
    return inside and all(
        one.upper <= other.lower or other.upper <= one.lower or a + one.size <= b or b + other.size <= a
        for n, (one, a) in enumerate(placed)
        for other, b in placed[:n]
    )


def hard(name: str) -> list[Buffer]:
    path = TESTS / "data" / "minimalloc" / f"{name}.{HARD_BYTES}.csv"
    with path.open(encoding="utf-8") as lines:
        return [Buffer(int(row["lower"]), int(row["upper"]), int(row["size"])) for row in csv.DictReader(lines)]


@pytest.mark.parametrize(
    "name",
    [
        "C",
        "F",
        *(
            pytest.param(
                name, marks=pytest.mark.slow(reason="searches for seconds; two problems of the six run by default")
            )
            for name in ("A", "B", "D", "E")
        ),
    ],
)
def test_published_hard_problems(name: str) -> None:
    buffers = hard(name)
    found = pack(buffers, HARD_BYTES, 400_000)
    assert found.finished and found.addresses is not None
    assert apart(buffers, found.addresses, HARD_BYTES)


def test_equal_problems_have_equal_packings() -> None:
    assert pack(hard("F"), HARD_BYTES, 10_000) == pack(hard("F"), HARD_BYTES, 10_000)


def test_steps_that_run_out() -> None:
    found = pack(hard("E"), HARD_BYTES, 300)
    assert (found.addresses, found.steps, found.finished) == (None, 300, False)


def test_more_bytes_alive_than_there_are_need_no_step() -> None:
    found = pack([Buffer(0, 2, 3), Buffer(1, 4, 2)], 4, 100)
    assert (found.addresses, found.steps, found.finished) == (None, 0, True)


def test_nothing_and_one_buffer() -> None:
    assert pack([], 1, 10).addresses == ()
    assert pack([Buffer(3, 9, 7)], 7, 10).addresses == (0,)


def test_bytes_alive_at_one_time() -> None:
    assert live_peak([]) == 0
    assert live_peak([Buffer(0, 3, 5), Buffer(3, 4, 6), Buffer(2, 4, 1)]) == 7


@pytest.mark.parametrize(
    ("lower", "upper", "size", "message"),
    [
        (3, 3, 1, "a buffer lives from 3 to before 3; give it a later end"),
        (0, 1, 0, "a buffer of 0 bytes; give it a positive size"),
    ],
)
def test_buffers_that_are_none(lower: int, upper: int, size: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Buffer(lower, upper, size)


BUFFERS = st.builds(
    lambda lower, length, size: Buffer(lower, lower + length, size),
    st.integers(0, 5),
    st.integers(1, 4),
    st.integers(1, 3),
)


@given(st.lists(BUFFERS, min_size=1, max_size=6), st.integers(3, 5))
def test_a_packing_is_found_exactly_if_there_is_one(buffers: list[Buffer], capacity: int) -> None:
    found = pack(buffers, capacity, 100_000)
    assert found.finished
    every = product(*(range(max(capacity - b.size, -1) + 1) for b in buffers))
    assert (found.addresses is not None) == any(apart(buffers, at, capacity) for at in every)
    assert found.addresses is None or apart(buffers, found.addresses, capacity)


def test_bytes_enough_at_all_times_and_no_packing() -> None:
    """Seven buffers of at most 4 bytes alive, none of whose 5,184 arrangements in 4 bytes is a packing."""
    lives = [(1, 4, 1), (5, 6, 2), (4, 7, 2), (0, 3, 2), (0, 1, 2), (1, 5, 1), (3, 5, 1)]
    buffers = [Buffer(*life) for life in lives]
    assert live_peak(buffers) == 4
    assert not any(apart(buffers, at, 4) for at in product(*(range(5 - b.size) for b in buffers)))
    found = pack(buffers, 4, 1_000)
    assert found.addresses is None and found.finished and found.steps > 0
    found = pack(buffers, 5, 1_000)
    assert found.addresses is not None and apart(buffers, found.addresses, 5)
