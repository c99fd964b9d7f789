"""Rounding float32 in place equals the codec, which the oracle checks code by code."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from spyre_mlir.hw.number_formats import dl16
from spyre_mlir.hw.number_formats.rounding import Tally, round_into


def samples() -> np.ndarray:
    """Every value of the ten leading fraction bits in every binade of float32, and its two neighbours."""
    middle = (np.arange(1 << 19, dtype=np.uint32) << 13).astype(np.uint32)
    return np.concatenate([middle, middle + np.uint32(1), middle - np.uint32(1)]).view(np.float32)


@pytest.mark.parametrize("overflow", dl16.OverflowRule)
@pytest.mark.parametrize("block", [64, 1 << 14])
def test_every_binade_and_every_tie_is_rounded_as_the_codec_does(overflow: dl16.OverflowRule, block: int) -> None:
    values = samples()
    with np.errstate(invalid="ignore"):
        expected = dl16.round_trip(values, overflow)
    got = np.empty_like(values)
    for at in range(0, len(values), block):
        round_into(got[at : at + block], values[at : at + block], overflow)
    assert np.array_equal(got, expected, equal_nan=True)
    number = ~np.isnan(expected)
    assert np.array_equal(np.signbit(got[number]), np.signbit(expected[number]))


def test_what_is_met_is_counted() -> None:
    tally = Tally()
    values = np.asarray([1e10, -1e10, np.inf, np.nan, 8.5e9, 1.0, 0.0, 1e-12], dtype=np.float32)
    round_into(values, values, dl16.OverflowRule.SATURATE, tally)
    assert (tally.overflows, tally.specials) == (2, 2)
    assert values.tolist()[:2] == [8573157376.0, -8573157376.0]
    assert values.tolist()[5:] == [1.0, 0.0, 0.0]


@pytest.mark.parametrize("number", [0.1, 1e-30, 1e12, np.inf])
def test_arrays_without_dimensions(number: float) -> None:
    values = np.array(number, np.float32)
    target = np.empty((), np.float32)
    round_into(target, values)
    np.testing.assert_array_equal(target, dl16.round_trip(values))


@pytest.mark.parametrize("count", [1, 4096, 3 << 16])
def test_values_and_target_in_pieces_give_what_they_give_in_a_row(count: int) -> None:
    rng = np.random.default_rng(1)
    wide = (rng.standard_normal((count, 2)) * 2.0 ** rng.integers(-40, 40, (count, 2))).astype(np.float32)
    row, pieces = np.empty(count, np.float32), np.empty((count, 3), np.float32)
    round_into(row, np.ascontiguousarray(wide[:, 0]))
    round_into(pieces[:, 1], wide[:, 0])
    assert np.array_equal(pieces[:, 1], row)
    assert np.array_equal(row, dl16.round_trip(wide[:, 0]).astype(np.float32))


@pytest.mark.parametrize("zeros", [False, True])
def test_numbers_without_special_cases_go_to_a_target_in_pieces(*, zeros: bool) -> None:
    rng = np.random.default_rng(2)
    values = (rng.uniform(1, 2, (300, 64)) * 2.0 ** rng.integers(-30, 32, (300, 64))).astype(np.float32)
    values *= rng.choice([-1, 1], values.shape)
    if zeros:
        values[::3, ::5] = 0.0
    pieces = np.full((300, 2, 64), 7, np.float32)
    round_into(pieces[:, 1], values)
    assert np.array_equal(pieces[:, 1], dl16.round_trip(values).astype(np.float32))
    assert (pieces[:, 0] == 7).all()


def test_threads_do_not_share_what_is_in_between() -> None:
    def rounded(value: float) -> bool:
        out = np.empty((500, 64), np.float32)
        return all(
            not round_into(out, np.full((500, 64), value, np.float32)) and (out == value).all() for _ in range(50)
        )

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(rounded, [1.0, 2.0, 3.0, 4.0]))
