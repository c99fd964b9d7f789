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
