"""Zeroed memory that is written in few places."""

from __future__ import annotations

import mmap
import resource

import numpy as np
import pytest

from spyre_mlir.machine.memory.pages import sparse_zeros

MEGABYTE = 1 << 20


@pytest.mark.parametrize("count", [0, 1, 2 * MEGABYTE - 1, 2 * MEGABYTE, 3 * MEGABYTE + 128])
def test_so_many_zeros_that_can_be_written(count: int) -> None:
    made = sparse_zeros(count)
    assert (made.dtype, made.shape, bool(made.any())) == (np.uint8, (count,), False)
    made[-1:] = 7
    assert made.sum() == (7 if count else 0)


def test_memory_of_a_huge_page_or_more_is_mapped() -> None:
    owned = [sparse_zeros(count).flags.owndata for count in (2 * MEGABYTE - 1, 2 * MEGABYTE)]
    assert owned == [True, False]


def test_a_write_takes_a_page() -> None:
    made = sparse_zeros(64 * MEGABYTE)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    made[:: 2 * MEGABYTE] = 1
    assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before >= 32  # a huge page covers two of them
    assert made.sum() == 32


def test_a_system_without_anonymous_maps_has_plain_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(mmap, "MAP_ANONYMOUS")
    assert sparse_zeros(2 * MEGABYTE).flags.owndata
