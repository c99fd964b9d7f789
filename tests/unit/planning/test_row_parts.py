"""Parts of the rows that a gather copies."""

from __future__ import annotations

import pytest

from spyre_mlir.hw.spec import SPYRE
from spyre_mlir.planning.row_parts import parts_of_rows


@pytest.mark.parametrize(
    ("indices", "row_sticks", "pieces", "parts"),
    [
        ((1, 512), 32, 32, 2),  # 16 sticks of indices
        ((1, 128), 32, 32, 8),
        ((3, 128), 32, 32, 8),
        ((1, 100), 16, 16, 8),  # no whole sticks: one core
        ((4, 64), 1024, 8, 4),  # pages of 8 heads
        ((4, 64), 1024, 3, 3),
    ],
)
def test_cores_without_indices_get_parts_of_rows(
    indices: tuple[int, ...], row_sticks: int, pieces: int, parts: int
) -> None:
    assert parts_of_rows(indices, row_sticks, pieces, 32, SPYRE) == parts


@pytest.mark.parametrize(
    ("indices", "row_sticks"),
    [
        ((4, 512), 32),  # all cores have indices
        ((1, 1), 64),  # less than 5 us
        ((1, 512), 1),  # a row of one stick
    ],
)
def test_rows_stay_whole(indices: tuple[int, ...], row_sticks: int) -> None:
    assert parts_of_rows(indices, row_sticks, row_sticks, 32, SPYRE) == 1
