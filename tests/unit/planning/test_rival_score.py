"""The score of a division of a matmul, against sums done by hand from torch-spyre's constants."""

from __future__ import annotations

import pytest

from spyre_mlir.planning.rival_score import ProductShape, RivalScore, Splits, rival_score

# 64 rows a core: full rate. 512 columns a core: no wider than wanted. 1024 columns and depth: deep by nothing.
SHAPE = ProductShape(rows=256, columns=4096, depth=4096)
MACS = 256 * 4096 * 4096 / 1.536e6
MOVED = 2 * (2 * 256 * 4096 + 4096 * 4096) / 204_800
BATCHED = ProductShape(batch=4, rows=256, columns=256, depth=512, shared=False)
BATCHED_MACS = 4 * 256 * 256 * 512 / 1.536e6
BATCHED_MOVED = 2 * 4 * (2 * 256 * 512 + 256 * 256) / 204_800


@pytest.mark.parametrize(
    ("shape", "splits", "score"),
    [
        # 4 slices of rows are half of the 8 that 256 / 32 rows ask for: 10 us.
        (SHAPE, (1, 4, 8, 1), RivalScore(MACS / 32, MOVED, 0, 10)),
        # 32 rows a core are slower by a fourth root; 1024 columns are twice as wide as wanted, and 8 times 128 of a
        # weight that is wide enough.
        (SHAPE, (1, 8, 4, 1), RivalScore(MACS / 32 * (40 / 32) ** 0.25, MOVED, 0, 25)),
        # 16 cores read the same: twice 8.
        (SHAPE, (1, 2, 16, 1), RivalScore(MACS / 32, MOVED * 2**0.75, 0, 20)),
        # 8 rows a core: as slow as it gets, half of 16 rows, 4096 columns a core are 8 times 512.
        (SHAPE, (1, 32, 1, 1), RivalScore(MACS / 32 * 5**0.25, MOVED * 4**0.75, 0, 30 + 75)),
        # Slices of the depth: half the rate, and partial sums. A quarter of 8 slices of rows; 1024 columns.
        (SHAPE, (1, 4, 4, 2), RivalScore(MACS / 32 * 2, MOVED, 256 * 4096 / 16 * 1e-3, 10 + 25)),
        # 16 idle cores.
        (SHAPE, (1, 4, 4, 1), RivalScore(MACS / 16, MOVED, 0, 10 + 25 + 150)),
        # A sum of 4 times as many as there are columns, a quarter of 4096 columns of which 256 a core are twice 128.
        (
            ProductShape(rows=256, columns=1024, depth=4096),
            (1, 8, 4, 1),
            RivalScore(MACS / 128 * 1.25**0.25, 2 * 256 * (5120 + 16384) / 204_800, 0, 10 * 2 * 2 + 5 * 2 * 1),
        ),
        # A batch of its own weights: only slices of columns disturb; 32 rows of 256.
        (BATCHED, (1, 32, 1, 1), RivalScore(BATCHED_MACS / 32 * 5**0.25, BATCHED_MOVED, 0, 30)),
        (BATCHED, (4, 8, 1, 1), RivalScore(BATCHED_MACS / 32 * 1.25**0.25, BATCHED_MOVED, 0, 20)),
        (BATCHED, (1, 8, 4, 1), RivalScore(BATCHED_MACS / 32 * 1.25**0.25, BATCHED_MOVED, 0, 20 * 1 * 2)),
        (BATCHED, (1, 8, 1, 4), RivalScore(BATCHED_MACS / 16 * 1.25**0.25, BATCHED_MOVED, 3 * 32768 * 1e-4, 0)),
        # With 8 rows a core its depth does not count.
        (BATCHED, (1, 32, 4, 1), RivalScore(BATCHED_MACS / 128 * 5**0.25, BATCHED_MOVED, 0, 30)),
    ],
)
def test_score_of_a_division(shape: ProductShape, splits: Splits, score: RivalScore) -> None:
    found = rival_score(shape, splits, 32)
    assert vars(found) == pytest.approx(vars(score), rel=1e-12)
    assert found.total == pytest.approx(sum(vars(score).values()), rel=1e-12)


def test_few_rows_want_four_slices_at_least_and_many_half_of_the_cores_at_most() -> None:
    few, many = ProductShape(rows=64, columns=64, depth=64), ProductShape(rows=8192, columns=64, depth=64)
    # One slice where 4 are wanted: 2 halvings; 31 of 32 cores idle: 5; 64 columns of 4096: 6 halvings, none of 128.
    assert rival_score(few, (1, 1, 1, 1), 32).preferences == 10 * 2 + 150 * 5
    assert rival_score(many, (1, 1, 1, 1), 32).preferences == 10 * 4 + 150 * 5
    assert rival_score(many, (1, 1, 1, 1), 16).preferences == 10 * 3 + 150 * 4


def test_bytes_of_an_element_count() -> None:
    float8 = ProductShape(rows=256, columns=4096, depth=4096, input_bytes=1)
    moved = (256 * 4096 + 4096 * 4096) + 2 * 256 * 4096
    assert rival_score(float8, (1, 4, 8, 1), 32).hbm == pytest.approx(moved / 204_800)


def test_a_batch_with_one_weight_reads_it_once() -> None:
    shape = ProductShape(batch=3, rows=100, columns=64, depth=128)
    assert rival_score(shape, (1, 1, 1, 1), 32).hbm == pytest.approx(2 * (3 * 100 * 192 + 128 * 64) / 204_800)
