"""Bytes of a KTIR run: elements at steps and anywhere, and accesses that are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects.test import TestOp

from spyre_mlir.errors import FaultKind, MachineFault, UnsupportedError
from spyre_mlir.machine.ktdp.regions import Scattered, Strided, TrackedRegion, Where, tag_name, tag_of

OP = TestOp()
HALF, SINGLE = np.dtype(np.float16), np.dtype(np.float32)
BASE = 1000


def clocks(*times: int) -> NDArray[np.int64]:
    return np.asarray(times, np.int64)


ALONE = clocks(1)


def line(count: int, start: int = BASE, step: int = 2) -> Strided:
    return Strided(start, (count,), (step,))


def spread(*offsets: int) -> Scattered:
    return Scattered(np.asarray(offsets, np.int64) + BASE)


def region(elements: int = 8, unit: int = 2, name: str = "x", *, shared: bool = False) -> TrackedRegion:
    return TrackedRegion(name, BASE, elements * unit, unit, shared)


def filled(*, shared: bool = False) -> TrackedRegion:
    made = region(shared=shared)
    made.fill(np.arange(8, dtype=HALF))
    return made


@pytest.mark.parametrize(
    ("where", "reach"),
    [
        (Strided(100, (3, 4), (20, 2)), (100, 148)),
        (Strided(100, (3, 4), (-20, 2)), (60, 108)),
        (Scattered(np.asarray([108, 100])), (100, 110)),
    ],
)
def test_the_first_byte_and_the_one_past_the_last(where: Where, reach: tuple[int, int]) -> None:
    assert where.reach(2) == reach


@pytest.mark.parametrize("where", [Strided(BASE + 8, (2, 3), (16, 4)), spread(*[8, 12, 16], *[24, 28, 32])])
def test_elements_are_read_and_written_in_place(where: Where) -> None:
    """An element of four bytes takes two units of two."""
    flat = np.arange(40, dtype=np.int16)
    wanted = np.asarray([[4, 5], [6, 7], [8, 9], [12, 13], [14, 15], [16, 17]])
    assert where.read(flat, BASE, 2, 4).reshape(6, 2).tolist() == wanted.tolist()
    where.write(flat, BASE, 2, 4, -1)
    assert np.flatnonzero(flat == -1).tolist() == sorted({*wanted.reshape(-1)})
    singles = np.arange(20, dtype=np.int32)
    assert where.read(singles, BASE, 4, 4).reshape(-1).tolist() == [2, 3, 4, 6, 7, 8]


@pytest.mark.parametrize(
    ("where", "twice"),
    [
        (Strided(0, (2, 3), (6, 2)), False),
        (Strided(0, (2, 3), (0, 2)), True),
        (Strided(0, (1, 3), (0, 2)), False),
        (spread(0, 2, 4), False),
        (spread(0, 2, 0), True),
    ],
)
def test_two_elements_at_one_address(where: Where, *, twice: bool) -> None:
    assert where.touches_twice() is twice


def test_types_have_tags_and_nothing_is_zero() -> None:
    assert tag_of(HALF) > 0
    assert tag_of(HALF) == tag_of(np.dtype("float16"))
    assert tag_of(HALF) != tag_of(SINGLE)
    assert tag_name(tag_of(SINGLE)) == "float32"
    assert tag_name(tag_of(HALF)) == "float16"


def test_an_array_that_is_filled_in_is_read_back() -> None:
    made = filled()
    assert made.contents(HALF, (2, 3)).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert made.read(Strided(BASE + 2, (2, 2), (8, 4)), HALF, OP, 0, ALONE).tolist() == [[1, 3], [5, 7]]
    copied = made.read(line(8), HALF, OP, 0, ALONE)
    copied[0] = 9
    assert made.contents(HALF, (1,)).tolist() == [0]


def test_what_is_written_is_read_and_the_rest_has_no_value() -> None:
    made = region()
    made.write(line(3, BASE + 4), np.asarray([5, 6, 7], HALF), OP, 0, ALONE)
    assert made.read(spread(8, 4), HALF, OP, 0, ALONE).tolist() == [7, 5]
    with pytest.raises(MachineFault, match="4 bytes of x, from 0x3e8 on, were never written") as caught:
        made.read(line(4), HALF, OP, 2, ALONE)
    assert (caught.value.kind, caught.value.place.core) == (FaultKind.UNINITIALISED_READ, 2)


def test_elements_of_another_type_are_named() -> None:
    made = region(8, name="LX of core 0")
    made.write(line(4), np.zeros(4, HALF), OP, 0, ALONE)
    with pytest.raises(MachineFault, match="8 bytes of LX of core 0, from 0x3e8 on, hold float16, not float32") as met:
        made.read(line(2, step=4), SINGLE, OP, 1, ALONE)
    assert (met.value.kind, met.value.place.core) == (FaultKind.WRONG_FORMAT, 1)
    made.write(line(2, step=4), np.zeros(2, SINGLE), OP, 0, ALONE)  # a scratchpad is used again
    assert made.read(line(2, step=4), SINGLE, OP, 0, ALONE).tolist() == [0, 0]
    with pytest.raises(MachineFault, match="hold float32, not float16"):
        made.read(line(1), HALF, OP, 0, ALONE)


def test_an_array_keeps_its_type() -> None:
    made = filled()
    with pytest.raises(MachineFault, match="16 bytes of x, from 0x3e8 on, hold float16, not int16"):
        made.read(line(8), np.dtype(np.int16), OP, 0, ALONE)
    with pytest.raises(MachineFault, match="x has elements of float16, not int16") as caught:
        made.write(line(8), np.zeros(8, np.int16), OP, 3, ALONE)
    assert (caught.value.kind, caught.value.place.core) == (FaultKind.WRONG_FORMAT, 3)
    made.write(line(2), np.asarray([8, 9], HALF), OP, 0, ALONE)
    assert made.contents(HALF, (3,)).tolist() == [8, 9, 2]


@pytest.mark.parametrize(
    ("where", "kind", "met", "says"),
    [
        (line(8, BASE - 2), HALF, FaultKind.OUT_OF_BOUNDS, "bytes 0x3e6..0x3f6 leave x, which is 0x3e8..0x3f8"),
        (line(8, BASE + 2), HALF, FaultKind.OUT_OF_BOUNDS, "bytes 0x3ea..0x3fa leave x"),
        (line(4), np.dtype(np.int8), FaultKind.WRONG_FORMAT, "x has elements of 2 bytes, not int8"),
        (line(2, BASE + 2, 4), SINGLE, FaultKind.MISALIGNED, "byte 0x3ea of x is between two elements of float32"),
        (line(2, BASE + 1), HALF, FaultKind.MISALIGNED, "byte 0x3e9 of x is between two elements of float16"),
    ],
)
def test_an_access_that_does_not_fit_is_refused(where: Where, kind: np.dtype[Any], met: FaultKind, says: str) -> None:
    made = region()
    for use in (
        lambda: made.read(where, kind, OP, 4, ALONE),
        lambda: made.write(where, np.zeros(where.shape, kind), OP, 4, ALONE),
    ):
        with pytest.raises(MachineFault, match=says) as caught:
            use()
        assert (caught.value.kind, caught.value.place.core) == (met, 4)
    made.check(line(8), HALF, OP, 4)


def test_elements_that_are_no_multiple_of_the_unit() -> None:
    odd = TrackedRegion("x", BASE, 24, 3)
    with pytest.raises(MachineFault, match="elements of 3 bytes, not float32"):
        odd.check(line(1), SINGLE, OP, 0)
    with pytest.raises(UnsupportedError, match="elements of int8 in a scratchpad"):
        region(name="LX of core 1").check(line(1), np.dtype(np.int8), OP, 0)


def test_a_store_puts_no_two_elements_in_one_place() -> None:
    with pytest.raises(MachineFault, match="two elements of one store go to one place of x") as caught:
        region().write(spread(0, 2, 0), np.zeros(3, HALF), OP, 5, ALONE)
    assert (caught.value.kind, caught.value.place.core) == (FaultKind.DOUBLE_WRITE, 5)


# --- several cores: a core knows its own time and what the others had done when they last told it


ZERO, ONE = clocks(3, 1), clocks(1, 2)  # core 0 is at its time 3 and core 1 at its time 2, and neither knows more


def test_what_another_core_writes_is_not_read_before_it_is_known() -> None:
    made = filled(shared=True)
    made.write(line(2), np.asarray([8, 9], HALF), OP, 0, ZERO)
    assert made.read(line(2), HALF, OP, 0, ZERO).tolist() == [8, 9]
    assert made.read(line(6, BASE + 4), HALF, OP, 1, ONE).tolist() == [2, 3, 4, 5, 6, 7]
    with pytest.raises(MachineFault, match="core 1 reads 2 elements of x that core 0 writes") as caught:
        made.read(line(3), HALF, OP, 1, ONE)
    assert (caught.value.kind, caught.value.place.core) == (FaultKind.READ_WRITE_RACE, 1)
    assert "inter_tile_reduce" in str(caught.value)
    with pytest.raises(MachineFault, match="core 1 reads"):
        made.read(line(3), HALF, OP, 1, clocks(3, 2))
    assert made.read(line(3), HALF, OP, 1, clocks(4, 2)).tolist() == [8, 9, 2]


def test_what_another_core_writes_is_not_written_before_it_is_known() -> None:
    made = filled(shared=True)
    made.write(line(2), np.asarray([8, 9], HALF), OP, 1, ONE)
    with pytest.raises(MachineFault, match="core 0 writes 1 elements of x that core 1 writes") as caught:
        made.write(line(2, BASE + 2), np.zeros(2, HALF), OP, 0, ZERO)
    assert (caught.value.kind, caught.value.place.core) == (FaultKind.DOUBLE_WRITE, 0)
    made.write(line(2, BASE + 4), np.zeros(2, HALF), OP, 0, ZERO)
    made.write(line(2), np.asarray([1, 1], HALF), OP, 0, clocks(3, 3))
    assert made.contents(HALF, (4,)).tolist() == [1, 1, 0, 0]


def test_what_another_core_reads_is_not_written_before_it_is_known() -> None:
    made = filled(shared=True)
    made.read(line(2), HALF, OP, 0, ZERO)
    made.write(line(1), np.asarray([7], HALF), OP, 0, ZERO)  # its own reading is no matter
    made.write(line(2, BASE + 4), np.zeros(2, HALF), OP, 1, ONE)
    for known in (ONE, clocks(3, 2)):
        with pytest.raises(MachineFault, match="core 1 writes elements of x that core 0 reads") as caught:
            made.write(line(2, BASE + 2), np.zeros(2, HALF), OP, 1, known)
        assert (caught.value.kind, caught.value.place.core) == (FaultKind.READ_WRITE_RACE, 1)
        assert "inter_tile_reduce" in str(caught.value)
    made.write(line(1, BASE + 2), np.zeros(1, HALF), OP, 1, clocks(4, 2))


def test_all_readers_of_an_element_are_remembered() -> None:
    made = filled(shared=True)
    for core in (0, 2, 1):
        made.read(line(1), HALF, OP, core, clocks(1, 1, 1, 1))
    with pytest.raises(MachineFault, match="core 3 writes elements of x that core 0 reads"):
        made.write(line(1), np.zeros(1, HALF), OP, 3, clocks(1, 1, 1, 1))
    with pytest.raises(MachineFault, match="core 3 writes elements of x that core 1 reads"):
        made.write(line(1), np.zeros(1, HALF), OP, 3, clocks(2, 1, 1, 1))
    with pytest.raises(MachineFault, match="core 3 writes elements of x that core 2 reads"):
        made.write(line(1), np.zeros(1, HALF), OP, 3, clocks(2, 2, 1, 1))
    made.write(line(1), np.zeros(1, HALF), OP, 3, clocks(2, 2, 2, 1))


def test_what_cores_do_to_a_region_of_their_own_is_not_remembered() -> None:
    made = filled()
    made.write(line(2), np.asarray([8, 9], HALF), OP, 0, ZERO)
    assert made.read(line(2), HALF, OP, 1, ONE).tolist() == [8, 9]
    assert made.writers is None
    assert made.readers == {}
