"""The published score of a division, against sums done by hand from its constants."""

from __future__ import annotations

from math import inf

import pytest

from spyre_mlir.hw.split_model import ProductShape, Splits, best_split, split_score

MACS = 64**3 / 1.536e6
MOVED = 2 * 3 * 64**2 / 204_800


@pytest.mark.parametrize(
    ("shape", "splits", "score"),
    [
        # Eight passes of eight rows: nothing but products and bytes.
        ((1, 64, 64, 64), (1, 1, 1, 1), MACS + MOVED),
        ((1, 64, 64, 64), (1, 1, 4, 1), MACS / 4 + MOVED),
        # Every further partial sum costs per element of the result.
        ((1, 64, 64, 64), (1, 1, 1, 3), MACS / 3 + MOVED + 2 * 64**2 * 1.4e-4),
        ((2, 64, 64, 64), (1, 1, 1, 2), MACS + 2 * MOVED + 2 * 64**2 * 1.4e-4),
        # Two passes of eight wanted: half as efficient, and two halvings at 50 each.
        ((1, 64, 64, 64), (1, 4, 1, 1), MACS / 4 / 0.5 + MOVED + 100),
        # There is no less than one pass.
        ((1, 64, 64, 64), (1, 16, 1, 1), MACS / 16 / 8**-0.5 + MOVED * 2 + 150),
        # More than eight passes are as good as eight.
        ((1, 128, 64, 64), (1, 1, 1, 1), 2 * MACS + 2 * (2 * 128 * 64 + 64 * 64) / 204_800),
        ((1, 64, 128, 64), (1, 1, 1, 1), 2 * MACS + 2 * (64 * 64 + 2 * 64 * 128) / 204_800),
        ((1, 64, 64, 128), (1, 1, 1, 1), 2 * MACS + 2 * (64 * 64 + 2 * 64 * 128) / 204_800),
        # Beyond eight cores side by side, memory is read as often as they are more.
        ((1, 64, 64, 64), (1, 1, 8, 1), MACS / 8 + MOVED),
        ((1, 64, 64, 64), (1, 1, 24, 1), MACS / 24 + MOVED * 3),
        # A divided batch is worth less than its share.
        ((2, 64, 64, 64), (2, 1, 1, 1), (MACS + 2 * MOVED) * 2**1.4),
    ],
)
def test_score_of_a_division(shape: tuple[int, int, int, int], splits: Splits, score: float) -> None:
    assert split_score(ProductShape(*shape), splits) == pytest.approx(score, rel=1e-12)


def test_a_shape_is_a_value() -> None:
    assert len({ProductShape(1, 2, 3, 4), ProductShape(1, 2, 3, 4)}) == 1


def test_a_division_over_more_cores_than_there_are_is_impossible() -> None:
    shape = ProductShape(1, 64, 64, 64)
    assert split_score(shape, (1, 2, 2, 1), 4) < inf
    assert split_score(shape, (1, 5, 1, 1), 4) == inf
    assert split_score(shape, (1, 32, 1, 1)) < inf
    assert split_score(shape, (1, 33, 1, 1)) == inf


def test_one_stick_of_columns_or_depth_is_not_divided() -> None:
    # The rows cannot be divided without fewer passes than are wanted, the batch not without its exponent.
    assert best_split(ProductShape(2, 64, 64, 64), 64) == (1, 1, 1, 1)


def test_columns_are_divided_by_sticks() -> None:
    assert best_split(ProductShape(1, 64, 512, 64), 64) == (1, 1, 8, 1)
    assert best_split(ProductShape(1, 64, 512, 128), 128) == (1, 1, 4, 1)


def test_depth_is_divided_where_partial_sums_cost_less_than_products() -> None:
    # A half of the products, 64 * 64 * 8192 / 1.536e6 / 2 = 10.9, costs more than 64 * 64 sums, 0.57.
    assert best_split(ProductShape(1, 64, 64, 8192), 64, 2) == (1, 1, 1, 2)


def test_the_batch_is_never_divided_but_rows_are() -> None:
    assert best_split(ProductShape(4, 256, 64, 64), 64) == (1, 4, 1, 1)


def test_the_first_of_equal_divisions_is_taken() -> None:
    # Over two cores, halves of the rows and halves of the columns are alike.
    assert best_split(ProductShape(1, 128, 128, 64), 64, 2) == (1, 1, 2, 1)
