"""The cost model: hand arithmetic, and rows of published tables."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spyre_mlir.hw.certainty import Tag
from spyre_mlir.hw.cost import (
    Bottleneck,
    CostKind,
    MatmulLoops,
    Traffic,
    Work,
    cost,
    filled_by,
    roofline_us,
    total_us,
)
from spyre_mlir.hw.cost_parameters import (
    CALIBRATED,
    LAWS,
    PEAK,
    QUICK_STREAMS,
    CostParameters,
    names,
    number_of,
    scaled,
    uncertain,
)


def product(
    m: int,
    k: int,
    n: int,
    splits: tuple[int, int, int, int] = (1, 4, 8, 1),
    batch: int = 1,
    rows_outermost: tuple[bool, bool, bool] = (True, True, True),
) -> Work:
    cores = splits[0] * splits[1] * splits[2] * splits[3]
    sizes = [2 * batch * size for size in (m * k, k * n, m * n)]
    readers = (splits[2], splits[1], 1)
    operands = tuple(
        Traffic(bytes=size, needed=size, per_core=size * r // cores, readers=r, written=place == 2)
        for place, (size, r) in enumerate(zip(sizes, readers, strict=True))
    )
    left, right, out = (batch if outer else 1 for outer in rows_outermost)
    loops = MatmulLoops(batch=batch, rows=m, columns=n, depth=k, splits=splits, inside=(left, right, out))
    return Work(kind=CostKind.PRODUCT, cores=cores, elements=loops.macs, operands=operands, product=loops)


def pointwise(inputs: int, elements: int, *, local: bool = False, cores: int = 32) -> Work:
    size = 2 * elements
    one = Traffic(bytes=size, needed=size, per_core=size // cores, local=local)
    operands = (*[one] * inputs, replace(one, written=True))
    return Work(kind=CostKind.POINTWISE, cores=cores, elements=elements, operands=operands)


# Granite-3.3-8B, published table of least times: rows, depth, columns; microseconds at the peak of the hardware, and at
# 150 GB/s, 0.00574 ns per byte that is read and written, and 1140 MACs per ns and core.
ROOFLINE = [
    (512, 4096, 4096, 204.8, 303.7),
    (512, 4096, 2048, 112.6, 165.8),
    (512, 4096, 12800, 596.5, 889.6),
    (512, 12800, 4096, 596.5, 838.5),
    (2048, 4096, 4096, 699.1, 941.9),
    (2048, 4096, 12800, 2185, 2943),
    (1024, 1024, 1024, 30.72, 53.98),
    (4096, 4096, 4096, 1398, 1884),
]


@pytest.mark.parametrize(("m", "k", "n", "ideal", "measured_rate"), ROOFLINE)
def test_products_of_a_published_table(m: int, k: int, n: int, ideal: float, measured_rate: float) -> None:
    calibrated = cost(product(m, k, n))
    assert calibrated.roofline == pytest.approx(max(calibrated.compute, (m * k + k * n + m * n) * 2 / 150e3), rel=1e-3)
    assert cost(product(m, k, n), PEAK).roofline == pytest.approx(ideal, rel=1e-3)
    # The table knows neither how full the array is nor what is read again; here both are lossless.
    assert max(calibrated.compute, calibrated.memory) == pytest.approx(measured_rate, rel=1e-3)
    assert cost(product(m, k, n), PEAK).total == pytest.approx(ideal, rel=1e-3)


@pytest.mark.parametrize(
    ("inputs", "elements", "ideal", "measured_rate"),
    [(2, 512 * 4096, 61.44, 108.0), (1, 512 * 4096, 40.96, 80.0), (2, 512 * 12800, 192.0, 337.4)],
)
def test_pointwise_ops_of_a_published_table(inputs: int, elements: int, ideal: float, measured_rate: float) -> None:
    assert cost(pointwise(inputs, elements)).total == pytest.approx(measured_rate, rel=1e-3)
    assert cost(pointwise(inputs, elements), PEAK).total == pytest.approx(ideal, rel=1e-3)


def test_the_ridge_is_480_operations_per_byte() -> None:
    bytes_ = 1_000_000
    assert roofline_us(480 // 2 * bytes_, bytes_, PEAK) == pytest.approx(bytes_ / 204.8e3)
    assert roofline_us(481 * bytes_ // 2, bytes_, PEAK) > bytes_ / 204.8e3
    assert roofline_us(0, bytes_) == pytest.approx(bytes_ / 150e3)


def test_an_operand_of_many_cores_is_loaded_once_and_delivered() -> None:
    few, many = product(64, 4096, 4096, (1, 8, 4, 1)), product(64, 4096, 4096, (1, 32, 1, 1))
    left, right, out = 64 * 4096 * 2, 4096 * 4096 * 2, 64 * 4096 * 2
    turnaround = 0.00574 * out
    assert cost(few).memory == pytest.approx(((left + right + out) / 150 + turnaround) / 1000)
    # 32 cores are 4 times the 8 that share one load for nothing: 4 ** 0.75 times as long.
    assert cost(many).memory == pytest.approx(((left + right * 2.828427 + out) / 150 + turnaround) / 1000)
    assert many.moved() == left + right + out
    assert many.moved_per_core == left + 32 * right + out
    # Loaded by each for itself, at 2.3 GB/s: told, and not in the total.
    assert cost(many).memory_per_core == pytest.approx((right / 2.3 + (left + out) / 150) / 1000)
    assert cost(many).total == cost(many).memory


def test_few_rows_leave_the_array_empty() -> None:
    work = product(256, 4096, 4096, (1, 32, 1, 1))
    assert cost(work).fill == pytest.approx((8 / 64) ** 0.35) == filled_by(8, CALIBRATED)
    assert cost(product(2048, 4096, 4096)).fill == 1.0
    assert cost(work).compute == pytest.approx(256 * 4096 * 4096 / 32 / 1140 / 0.48296816 / 1000)
    assert cost(work, PEAK).fill == 1.0


def test_a_divided_sum_halves_the_rate_and_goes_round_the_ring() -> None:
    work = product(2048, 2048, 2048, (1, 2, 2, 4))
    assert cost(work).compute == pytest.approx(2 * 2048**3 / 16 / 1140 / 1000)
    assert cost(work).ring == pytest.approx(3 * (2048 * 2048 / 4) * 1.4e-4)
    assert cost(product(2048, 2048, 2048, (1, 2, 2, 8))).bound is Bottleneck.RING


def test_a_batch_inside_of_the_rows_is_slow() -> None:
    assert cost(product(1024, 2048, 1024, batch=4)).compute == pytest.approx(4 * 1024 * 2048 * 1024 / 32 / 160 / 1000)
    assert cost(product(1024, 2048, 1024, batch=2)).compute == pytest.approx(2 * 1024 * 2048 * 1024 / 32 / 1140 / 1000)


# Whether the rows of left, right and result are outermost, and microseconds on a card for [4, 1024, 2048] times
# [4, 2048, 1024]: HieronZhang/torch-spyre, bmm_layout_effects.md.
CUBE = {
    (True, True, True): 3792,
    (True, True, False): 3857,
    (True, False, True): 2276,
    (True, False, False): 2340,
    (False, True, True): 2246,
    (False, True, False): 2249,
    (False, False, True): 777,
    (False, False, False): 458,
}


def test_the_layout_of_a_batched_product_orders_as_measured() -> None:
    predicted = {case: cost(product(1024, 2048, 1024, batch=4, rows_outermost=case)).compute for case in CUBE}
    for case, us in CUBE.items():
        for other, other_us in CUBE.items():
            if us > 1.1 * other_us:
                assert predicted[case] > predicted[other], (case, other)
    slowest, fastest = (True, True, True), (False, False, False)
    assert predicted[slowest] / predicted[fastest] == pytest.approx(1140 / 160)
    # A layout does not matter to a few cores, nor to the peak.
    few = [cost(product(1024, 2048, 1024, (1, 2, 2, 1), 4, case)).compute for case in CUBE]
    assert len(set(few)) == 1
    assert len({cost(product(1024, 2048, 1024, batch=4, rows_outermost=case), PEAK).compute for case in CUBE}) == 1


def test_fewer_cores_reach_less_of_the_memory() -> None:
    whole = cost(pointwise(2, 2048 * 4096)).memory
    for law, shares in ((CALIBRATED, (0.11, 0.22, 0.43, 0.54, 0.54)), (QUICK_STREAMS, (0.59, 0.68, 0.78, 0.87, 0.87))):
        for cores, share in zip((1, 2, 4, 8, 16), shares, strict=True):
            assert cost(pointwise(2, 2048 * 4096, cores=cores), law).memory == pytest.approx(whole / share)
    # A product of one row: 25 cores took 1762 us, 32 took 1365 us (torch-spyre, issue 4032).
    one_row = [cost(product(1, 4096, 25600, (1, 1, n, 1))).total for n in (25, 32)]
    assert one_row[0] == pytest.approx(1762, rel=0.06) and one_row[1] == pytest.approx(1365, rel=0.06)
    assert cost(pointwise(2, 2**20, cores=1), PEAK).memory == cost(pointwise(2, 2**20), PEAK).memory


def test_a_variant_hides_less_of_a_product() -> None:
    work = product(512, 4096, 4096)
    usual, less = cost(work), cost(work, LAWS["partial-overlap"])
    assert usual.exposed == 0 and usual.total == max(usual.compute, usual.memory)
    assert less.total == pytest.approx(less.compute + less.memory - 0.46 * min(less.compute, less.memory))
    assert cost(pointwise(1, 2**20), LAWS["partial-overlap"]) == cost(pointwise(1, 2**20))


def test_a_large_tile_over_many_cores_is_read_again() -> None:
    work = product(4096, 2048, 2048, (1, 32, 1, 1))  # a tile of 128 x 2048, 131072 elements more than fit
    assert cost(work).reread == pytest.approx(131072 * 2.62 * 2 / 1000)
    assert cost(work).total == pytest.approx(cost(work).memory + cost(work).reread)
    assert cost(product(4096, 2048, 2048)).reread == 0


@pytest.mark.parametrize(("rows", "rate"), [(2048, 114 + 61 * 0.574910), (100, 150.0), (100_000, 114.0)])
def test_reductions_along_rows(rows: int, rate: float) -> None:
    read = Traffic(bytes=rows * 8192, needed=rows * 8192, per_core=rows * 256)
    written = Traffic(bytes=rows * 128, needed=rows * 2, per_core=rows * 4, written=True)
    work = Work(kind=CostKind.ROW_REDUCTION, cores=32, elements=rows * 4096, operands=(read, written), rows=rows)
    assert cost(work).memory == pytest.approx(rows * 8320 / rate / 1000, rel=1e-5)
    # 16 cores fill 54 % of the bus; 24 lie in the middle of 16 and 32 only in the logarithm.
    assert cost(replace(work, cores=16)).memory == pytest.approx(cost(work).memory / 0.54)
    assert cost(replace(work, cores=24)).memory == pytest.approx(cost(work).memory / (0.54 + 0.46 * 0.5849625))


def test_copies_and_sums_across_rows_have_rates_of_their_own() -> None:
    """Read and written bytes over the measured rate, the turnaround in it; few cores reach a part of it."""
    alike, moved = pointwise(1, 2**20), 2 * 2 * 2**20
    for kind, rate in ((CostKind.RESTICKIFY, 116), (CostKind.OUTER_REDUCTION, 113)):
        work = replace(alike, kind=kind)
        assert cost(work).memory == pytest.approx(moved / rate / 1000)
        assert cost(replace(work, cores=4)).memory == pytest.approx(moved / rate / 1000 / 0.43)
    whole, written = alike.operands
    row = Traffic(bytes=2 * 1024, needed=2 * 1024, per_core=2 * 1024, readers=32, small=True)
    broadcast = replace(alike, operands=(whole, row, written))
    assert cost(broadcast).memory == pytest.approx((moved + 2048) / 118 / 1000)
    # With no operand that is used again, or with no other, the general rule holds.
    rule = moved / 150 + 0.00574 * moved / 2
    assert cost(alike).memory == pytest.approx(rule / 1000)
    assert cost(replace(alike, operands=(replace(whole, small=True), written))).memory == pytest.approx(rule / 1000)


def test_scratchpads_are_nearly_free() -> None:
    work = pointwise(1, 2048 * 4096, local=True)
    assert cost(work).memory == 0 and work.moved() == 0
    assert cost(work).scratchpad == pytest.approx(2 * 2048 * 4096 * 2 / 32 / 547 / 1000)
    assert cost(work).compute == pytest.approx(2048 * 4096 / 32 / 70.4 / 1000)
    assert cost(work).bound is Bottleneck.COMPUTE


def test_kernels_in_a_loop_pay_for_every_trip() -> None:
    once, eight = cost(pointwise(1, 2**20)), cost(replace(pointwise(1, 2**20), trips=8))
    first = cost(replace(pointwise(1, 2**20), trips=8, iterations=8))
    assert once.fixed == eight.fixed == 0
    assert eight.total == pytest.approx(8 * once.total)
    # One of the kernels of a loop pays for its iterations.
    assert first.total == pytest.approx(8 * once.total + 8 * 0.69)
    dear = replace(CALIBRATED, kernel_fixed_us=2.0)
    assert cost(replace(pointwise(1, 2**20), trips=8), dear).fixed == 16


def test_engines_overlap_inside_a_kernel() -> None:
    c = cost(product(2048, 2048, 2048))
    assert 0 < c.memory < c.compute == c.total
    assert c.bound is Bottleneck.COMPUTE


SPLITS = st.tuples(*[st.sampled_from((1, 2, 4))] * 4).filter(lambda s: s[0] * s[1] * s[2] * s[3] <= 32)


@settings(max_examples=100, derandomize=True, database=None)
@given(SPLITS, st.sampled_from((64, 512, 4096)), st.sampled_from((64, 1024)), st.sampled_from((128, 4096)))
def test_nothing_beats_the_peak_and_the_peak_never_beats_the_roofline(
    splits: tuple[int, int, int, int], m: int, k: int, n: int
) -> None:
    work = product(m, k, n, splits, batch=4)
    assert cost(work).total >= cost(work).roofline * (1 - 1e-9)
    assert cost(work).total >= cost(work, PEAK).total >= cost(work, PEAK).roofline * (1 - 1e-9)


def test_every_number_has_a_source_and_a_certainty() -> None:
    for name in names():
        number = number_of(name)
        assert number.origin.source and number.peak_origin.source
        assert getattr(CALIBRATED, name) == number.calibrated and getattr(PEAK, name) == number.peak
    # Nothing that was fitted to measurements is certain.
    assert "hbm_gb_per_s" in uncertain() and number_of("hbm_gb_per_s").origin.certainty is Tag.LIKELY
    assert number_of("hbm_gb_per_s").peak_origin.certainty is Tag.CERTAIN


def test_one_number_can_be_changed() -> None:
    half = scaled(CALIBRATED, "hbm_gb_per_s", 0.5)
    assert half.hbm_gb_per_s == 75 and half == replace(CALIBRATED, hbm_gb_per_s=75.0)
    assert CostParameters() == CALIBRATED


def test_a_part_of_a_whole_is_not_more_than_the_whole() -> None:
    assert scaled(CALIBRATED, "product_overlap", 1.5).product_overlap == 1
    assert scaled(LAWS["quick-streams"], "stream_share_of_8_to_16_cores", 1.5).stream_share_of_8_to_16_cores == 1
    assert scaled(CALIBRATED, "stream_share_of_8_to_16_cores", 1.5).stream_share_of_8_to_16_cores == 0.54 * 1.5


def test_the_total_alone_is_that_of_all_parts() -> None:
    works = [product(2048, 4096, 12800), product(64, 64, 64, batch=8, splits=(1, 4, 4, 2)), pointwise(2, 4096)]
    works += [pointwise(1, 10**6, local=True), replace(pointwise(1, 64), trips=8, iterations=4)]
    for work in works:
        assert total_us(work) == pytest.approx(cost(work).total, rel=1e-12)
    # A scratchpad that is slower than all else counts only if asked for.
    slow = CostParameters(lx_gb_per_s_per_core=1.0)
    local = pointwise(1, 10**6, local=True)
    assert total_us(local, slow, scratchpad=False) < total_us(local, slow) == pytest.approx(cost(local, slow).total)


def test_operands_are_told_to_be_in_the_scratchpads() -> None:
    """The same as if the work said so, for every choice of operands."""
    for work in (product(2048, 4096, 12800), pointwise(2, 4096), pointwise(1, 10**6, local=True)):
        for chosen in range(1 << len(work.operands)):
            local = {n for n in range(len(work.operands)) if chosen >> n & 1}
            said = replace(work, operands=tuple(replace(o, local=n in local) for n, o in enumerate(work.operands)))
            for scratchpad in (True, False):
                assert total_us(work, scratchpad=scratchpad, local=local) == total_us(said, scratchpad=scratchpad)
