"""Where products are cut so that fewer cores read the same of a weight, by prices that are computed by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spyre_mlir.hw.cost_parameters import CALIBRATED, CostParameters
from spyre_mlir.hw.spec import SPYRE
from spyre_mlir.transforms.kernel_plans.shared_weights import ProductSize, alone_us, quicker_columns

WIDE = ProductSize(rows=64, columns=4544, depth=4544)


def cut(product: ProductSize, p: CostParameters = CALIBRATED, *, leaves: bool = True) -> int:
    return quicker_columns(product, SPYRE, p, leaves=leaves, room=False).first


def padded(product: ProductSize) -> int:
    return quicker_columns(product, SPYRE, CALIBRATED, leaves=False, room=True).padded


def test_all_cores_read_a_weight_whose_columns_have_no_slices() -> None:
    weight, rows, result = 4544 * 4544 * 2, 64 * 4544 * 2, 64 * 4544 * 2
    turnaround = CALIBRATED.hbm_turnaround_ns_per_byte * result
    # 32 readers take (32/8)^0.75 times as long as eight.
    delivered = (weight * 4**CALIBRATED.hbm_multicast_exponent + rows + result) / CALIBRATED.hbm_gb_per_s
    assert alone_us(WIDE, SPYRE, CALIBRATED) == pytest.approx((delivered + turnaround) / 1000, rel=0.03)


def test_a_part_is_read_by_fewer_cores() -> None:
    first = cut(WIDE)
    assert 0 < first < 4544 and first % 64 == 0
    parts = [replace(WIDE, columns=first), replace(WIDE, columns=4544 - first)]
    assert sum(alone_us(part, SPYRE, CALIBRATED) for part in parts) * 2 < alone_us(WIDE, SPYRE, CALIBRATED)


@pytest.mark.parametrize(
    "product",
    [
        ProductSize(rows=64, columns=4096, depth=4096),  # slices for all cores
        ProductSize(rows=64, columns=11008, depth=4096),  # four slices, and eight cores read each
        ProductSize(rows=64, columns=5 * 64, depth=64),  # a microsecond in all
    ],
)
def test_other_products_stay_whole(product: ProductSize) -> None:
    assert cut(product) == 0


def test_a_result_that_could_stay_in_the_scratchpads_has_to_gain_its_way() -> None:
    product = ProductSize(rows=64, columns=4544, depth=128)
    assert cut(product) == 4096
    assert cut(product, leaves=False) == 0


def test_nothing_is_cut_where_reading_together_is_free() -> None:
    free = replace(CALIBRATED, hbm_multicast_free_cores=32.0)
    assert cut(WIDE, free) == 0


@pytest.mark.parametrize(
    ("product", "sticks"),
    [
        (ProductSize(rows=512, columns=4544, depth=4544), 72),  # of 71: 64 and seven take longer
        (ProductSize(rows=256, columns=1600, depth=1600), 28),  # of 25: four cores have seven each
        (ProductSize(rows=512, columns=5504, depth=2048), 88),  # of 86, of which two cores have 43
        (ProductSize(rows=512, columns=4096, depth=4096), 64),  # slices for all cores
        (ProductSize(rows=256, columns=5 * 64, depth=4096), 5),  # a sixth stick would be a fifth more of the weight
    ],
)
def test_columns_without_readers_are_added_where_cores_can_share_them_then(product: ProductSize, sticks: int) -> None:
    assert padded(product) == sticks * 64


def test_two_products_are_made_where_one_with_more_columns_takes_longer() -> None:
    row = ProductSize(rows=1, columns=4544, depth=4544)
    found = quicker_columns(row, SPYRE, CALIBRATED, leaves=False, room=True)
    # 72 sticks are on 24 cores, which reach less of the memory's rate; 64 are on 32.
    assert (found.first, found.padded) == (4096, 4544)


def test_a_result_has_to_gain_its_way_through_device_memory() -> None:
    # All cores divide 512 rows, which stay in the scratchpads: 97 us; 28 sticks over four cores take 61, the ways 44.
    product = ProductSize(rows=512, columns=1600, depth=1600)
    assert padded(product) == 1600
    assert alone_us(replace(product, columns=1792), SPYRE, CALIBRATED) < alone_us(product, SPYRE, CALIBRATED) / 1.2
