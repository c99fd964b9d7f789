"""Numbers in device memory, against bits written out from the definitions of the formats."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from spyre_mlir.hw.number_formats.dl16 import OverflowRule
from spyre_mlir.hw.number_formats.encoding import STORED_TYPES, decode, encode, from_host

DL16, FP32, INT32, INDEX, FP8 = "SEN169_FP16", "IEEE_FP32", "IEEE_INT32", "SENUINT32", "SEN143_FP8"


def test_the_types_that_hold_the_formats() -> None:
    narrow = {FP8: ml_dtypes.float8_e4m3fn}
    assert {DL16: np.uint16, FP32: np.float32, INT32: np.int32, INDEX: np.uint32, **narrow} == STORED_TYPES


def test_eight_bit_floats_have_three_fraction_bits_below_an_exponent_with_bias_7() -> None:
    stored = encode([0.0, 1.0, -1.5, 448.0, 1e6], FP8)
    assert stored.view(np.uint8).tolist() == [0, 7 << 3, 0x80 | 7 << 3 | 4, 0x7E, 0x7E]
    assert decode(stored, FP8).tolist() == [0.0, 1.0, -1.5, 448.0, 448.0]


def test_dl16_has_nine_fraction_bits_below_an_exponent_with_bias_31() -> None:
    stored = encode([0.0, 1.0, -1.5, 2.0], DL16)
    assert stored.dtype == np.uint16
    assert stored.tolist() == [0, 31 << 9, 0x8000 | 31 << 9 | 1 << 8, 32 << 9]
    assert decode(stored, DL16).tolist() == [0.0, 1.0, -1.5, 2.0]


def test_infinities_and_nan_are_one_symbol_without_a_sign() -> None:
    assert encode([np.inf, -np.inf, np.nan, -np.nan], DL16).tolist() == [0x7FFF] * 4
    assert np.isnan(decode(np.array([0x7FFF], np.uint16), DL16)).all()


def test_a_number_beyond_dl16_saturates_or_becomes_the_symbol() -> None:
    assert encode([1e30, -1e30], DL16).tolist() == [0x7FFE, 0xFFFE]
    assert encode([1e30, -1e30], DL16, OverflowRule.SATURATE).tolist() == [0x7FFE, 0xFFFE]
    assert encode([1e30, -1e30], DL16, OverflowRule.NAN).tolist() == [0x7FFF, 0x7FFF]


@pytest.mark.filterwarnings("error")
def test_fp32_is_rounded_once_and_overflows_to_infinity() -> None:
    values = [0.1, 1e39, -1e39, np.nan]
    stored = encode(values, FP32)
    assert stored.dtype == np.float32
    assert stored.view(np.uint32).tolist()[:3] == [0x3DCCCCCD, 0x7F800000, 0xFF800000]
    assert np.isnan(stored[3])


@pytest.mark.parametrize(
    ("value", "stored", "index"),
    [
        (7.9, 7, 7),
        (-7.9, -7, 2**32 - 7),
        (2.0**31, -(2**31), 2**31),
        (2.0**32 + 5, 5, 5),
        (-(2.0**32) - 5, -5, 2**32 - 5),
        (2.0**70, 0, 0),
        (np.nan, 0, 0),
        (np.inf, 0, 0),
    ],
)
@pytest.mark.filterwarnings("error")
def test_integers_drop_the_fraction_and_keep_their_low_32_bits(value: float, stored: int, index: int) -> None:
    signed, unsigned = encode([value], INT32), encode([value], INDEX)
    assert (signed.dtype, signed.tolist()) == (np.int32, [stored])
    assert (unsigned.dtype, unsigned.tolist()) == (np.uint32, [index])


@pytest.mark.parametrize("name", [FP32, INT32, INDEX])
def test_other_formats_are_read_as_what_they_are(name: str) -> None:
    numbers = decode(np.array([0, 3, 16384], STORED_TYPES[name]), name)
    assert numbers.dtype == np.float64
    assert numbers.tolist() == [0.0, 3.0, 16384.0]


def test_infinities_from_the_host_are_the_largest_halves_in_dl16_only() -> None:
    values = np.array([np.inf, -np.inf, 1e9, np.nan])
    assert from_host(values, DL16)[:3].tolist() == [65504.0, -65504.0, 1e9]
    assert np.isnan(from_host(values, DL16)[3])
    assert from_host(values, FP32).tolist()[:3] == [np.inf, -np.inf, 1e9]
