"""Where products are cut so that fewer cores read the same of a weight, by prices that are computed by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spyre_mlir.hw.cost_parameters import CALIBRATED
from spyre_mlir.hw.spec import SPYRE
from spyre_mlir.transforms.kernel_plans.shared_weights import ProductSize, alone_us, columns_to_cut

WIDE = ProductSize(rows=64, columns=4544, depth=4544)


def test_all_cores_read_a_weight_whose_columns_have_no_slices() -> None:
    weight, rows, result = 4544 * 4544 * 2, 64 * 4544 * 2, 64 * 4544 * 2
    turnaround = CALIBRATED.hbm_turnaround_ns_per_byte * result
    # 32 readers take (32/8)^0.75 times as long as eight.
    delivered = (weight * 4**CALIBRATED.hbm_multicast_exponent + rows + result) / CALIBRATED.hbm_gb_per_s
    assert alone_us(WIDE, SPYRE, CALIBRATED) == pytest.approx((delivered + turnaround) / 1000, rel=0.03)


def test_a_part_is_read_by_fewer_cores() -> None:
    first = columns_to_cut(WIDE, SPYRE, CALIBRATED, leaves=True)
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
    assert columns_to_cut(product, SPYRE, CALIBRATED, leaves=True) == 0


def test_a_result_that_could_stay_in_the_scratchpads_has_to_gain_its_way() -> None:
    product = ProductSize(rows=64, columns=4544, depth=128)
    assert columns_to_cut(product, SPYRE, CALIBRATED, leaves=True) == 4096
    assert columns_to_cut(product, SPYRE, CALIBRATED, leaves=False) == 0


def test_nothing_is_cut_where_reading_together_is_free() -> None:
    free = replace(CALIBRATED, hbm_multicast_free_cores=32.0)
    assert columns_to_cut(WIDE, SPYRE, free, leaves=True) == 0
