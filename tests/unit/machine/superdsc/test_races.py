"""Cores that touch the same bytes at the same time, also where only a part of a word is shared."""

from __future__ import annotations

import pytest

from spyre_mlir.machine.faults import FaultKind, FaultLog, MachineFault, Place
from spyre_mlir.machine.memory.frames import StridedAxis
from spyre_mlir.machine.memory.strided_access import ByteAccess
from spyre_mlir.machine.superdsc.races import require_disjoint, require_no_race

FP32, DL16 = "IEEE_FP32", "SEN169_FP16"


def words(first: int, count: int, kind: str, core: int) -> ByteAccess:
    """Neighbouring words from byte `first` on, which one core touches."""
    width = {FP32: 4, DL16: 2}[kind]
    return ByteAccess(
        first, ((StridedAxis(count, width),),), (count,), kind, Place(op="0:add", tensor="Tensor2", core=core)
    )


@pytest.mark.parametrize(("first", "kind"), [(12, FP32), (14, FP32), (10, FP32)])
def test_two_cores_write_bytes_of_one_word(first: int, kind: str) -> None:
    """Core 0 writes bytes 0 to 15; core 1 begins inside of the last word, or of the one before."""
    with pytest.raises(MachineFault, match="both write") as caught:
        require_disjoint([words(0, 4, kind, 0), words(first, 4, kind, 1)], FaultLog())
    assert caught.value.kind == FaultKind.DOUBLE_WRITE


def test_neighbouring_words_are_disjoint() -> None:
    require_disjoint([words(0, 4, FP32, 0), words(16, 4, FP32, 1)], FaultLog())


@pytest.mark.parametrize("first", [0, 2, 6])
def test_a_narrow_write_into_any_half_of_a_wide_word_that_is_read(first: int) -> None:
    read, write = words(0, 2, FP32, 0), words(first, 1, DL16, 0)
    with pytest.raises(MachineFault, match="read and written by one operation") as caught:
        require_no_race([[read, write]], FaultLog())
    assert caught.value.kind == FaultKind.READ_WRITE_RACE


def test_a_wide_write_over_the_second_half_that_is_read() -> None:
    with pytest.raises(MachineFault, match="read and written by one operation"):
        require_no_race([[words(2, 1, DL16, 0), words(0, 1, FP32, 0)]], FaultLog())


def test_words_of_one_stick_side_by_side_are_no_race() -> None:
    require_no_race([[words(0, 2, FP32, 0), words(8, 1, DL16, 0)]], FaultLog())


@pytest.mark.parametrize(("first", "count"), [(12, 1), (14, 1), (8, 2)])
def test_a_double_write_names_cores_bytes_and_how_many(first: int, count: int) -> None:
    """Core 0 writes bytes 0 to 15, core 1 the sixteen from `first` on."""
    with pytest.raises(MachineFault, match=f"cores 0 and 1 both write {count} elements") as caught:
        require_disjoint([words(0, 4, FP32, 0), words(first, 4, FP32, 1)], FaultLog())
    place = caught.value.place
    assert (place.op, place.tensor, place.core, place.low, place.high) == ("0:add", "Tensor2", 1, first, first + 4)


def test_a_race_names_the_core_that_reads_and_the_one_that_writes() -> None:
    tiles = [[words(0, 2, FP32, 0), words(256, 1, FP32, 0)], [words(512, 2, FP32, 1), words(4, 1, FP32, 1)]]
    message = "4 bytes are read and written by one operation; the first, of Tensor2, core 0 reads and core 1 writes"
    with pytest.raises(MachineFault, match=message) as caught:
        require_no_race(tiles, FaultLog())
    place = caught.value.place
    assert (place.op, place.tensor, place.core, place.low, place.high) == ("0:add", "Tensor2", 1, 4, 8)
    assert caught.value.hint == "give the output a buffer of its own"


def test_cores_of_a_race_are_those_of_tiles_by_core() -> None:
    whole = [[words(0, 8, FP32, 9), words(16, 8, FP32, 9)]]
    parts = [[words(16 * n, 4, FP32, n), words(16 + 16 * n, 4, FP32, n)] for n in (0, 1)]
    with pytest.raises(MachineFault, match=r"16 bytes .* core 1 reads and core 0 writes"):
        require_no_race(whole, FaultLog(), lambda: parts)


def test_elements_that_are_read_to_compute_themselves_are_no_race() -> None:
    require_no_race([[words(0, 4, FP32, 0), words(0, 4, FP32, 0)]], FaultLog())
    with pytest.raises(MachineFault, match="read-write-race"):
        require_no_race([[words(0, 4, FP32, 0), words(4, 4, FP32, 0), words(0, 4, FP32, 0)]], FaultLog())


def test_a_stick_between_two_that_are_read_may_be_written() -> None:
    """Reads of sticks 0 and 2, a write of stick 1."""
    read = ByteAccess(0, ((StridedAxis(2, 256),),), (2,), FP32, Place(op="0:add", tensor="Tensor0", core=0))
    require_no_race([[read, words(128, 32, FP32, 0)]], FaultLog())
    with pytest.raises(MachineFault, match="read-write-race: 4 bytes"):
        require_no_race([[read, words(128, 33, FP32, 0)]], FaultLog())
