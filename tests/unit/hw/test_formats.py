"""Formats against the published table; DLFloat16 against its definition in exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from spyre_mlir.hw.formats import FORMATS, device_format
from spyre_mlir.hw.number_formats import dl16

LANDMARKS = {
    0x3C00: 0.5,
    0x3A00: 0.25,
    0x3E00: 1.0,
    0x4000: 2.0,
    0x4200: 4.0,
    0x1000: 2.0**-23,
    0x2E00: 1 / 256,
    0x5E00: 65536.0,
    0x7E00: 2.0**32,
    0x4F80: 448.0,
    0xBC00: -0.5,
    0x7FFE: 8_573_157_376.0,
}


def exact(code: int) -> Fraction:
    """Value of a positive finite code, from the definition of the format."""
    exponent, fraction = code >> 9, code & 511
    if code == 0:
        return Fraction(0)
    return Fraction(2) ** (exponent - 31) * (1 + Fraction(fraction, 512))


def nearest(value: Fraction) -> int:
    """Code nearest to a positive value, ties to the larger: a search over the ordered codes."""
    low, high = 0, 0x7FFE
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if exact(middle) <= value else (low, middle)
    return high if value - exact(low) >= exact(high) - value else low


@pytest.mark.parametrize(
    ("name", "bits", "word", "elements"),
    [
        ("SEN169_FP16", 16, 2, 64),
        ("IEEE_FP32", 32, 4, 32),
        ("SEN143_FP8", 8, 1, 128),
        ("SENINT4", 4, 0.5, 256),
        ("SENUINT32", 32, 4, 32),
        ("IEEE_INT32", 32, 4, 32),
    ],
)
def test_widths(name: str, bits: int, word: float, elements: int) -> None:
    entry = device_format(name)
    assert (entry.bits, entry.word_length, entry.elements_per_stick()) == (bits, word, elements)
    assert isinstance(entry.word_length, type(word))


def test_unknown_format_is_named_with_the_known_ones() -> None:
    with pytest.raises(KeyError, match=r"FP7.*SEN169_FP16"):
        device_format("FP7")
    assert "BOOL" not in FORMATS


@pytest.mark.parametrize(("code", "value"), LANDMARKS.items())
def test_landmarks(code: int, value: float) -> None:
    assert dl16.encode(value) == code
    assert dl16.decode(code) == value


def test_rounded_landmarks() -> None:
    assert dl16.encode([1 / 448, -1e4, 65504.0, -65504.0]).tolist() == [0x2C49, 0xD871, 0x5E00, 0xDE00]


def test_every_code_decodes_to_its_definition_and_back() -> None:
    codes = np.arange(0x7FFF, dtype=np.uint16)
    values = dl16.decode(codes)
    assert all(Fraction(value) == exact(int(code)) for code, value in zip(codes, values.tolist(), strict=True))
    assert np.array_equal(dl16.encode(values), codes)
    assert np.array_equal(dl16.encode(-values), codes | 0x8000)


def test_every_half_rounds_to_the_nearest_code() -> None:
    halves = np.arange(1, 0x7C00, 7, dtype=np.uint16).view(np.float16).astype(np.float64)
    expected = [nearest(Fraction(value)) for value in halves.tolist()]
    assert dl16.encode(halves).tolist() == expected


def test_random_values_and_ties_round_to_the_nearest_code() -> None:
    generator = np.random.default_rng(5)
    values = np.ldexp(generator.uniform(1, 2, 2000), generator.integers(-34, 33, 2000))
    codes = generator.integers(0, 0x7FFE, 500)
    ties = (dl16.decode(codes) + dl16.decode(codes + 1)) / 2
    for value in [*values.tolist(), *ties.tolist()]:
        assert int(dl16.encode(value)) == nearest(Fraction(value)), value


def test_special_values() -> None:
    assert dl16.encode([np.inf, -np.inf]).tolist() == [0x7FFF, 0xFFFF]
    assert int(dl16.encode(np.nan)) & 0x7FFF == 0x7FFF
    assert dl16.encode([1e30, -1e30]).tolist() == [0x7FFE, 0xFFFE]
    assert int(dl16.encode(1e30, dl16.OverflowRule.NAN)) == 0x7FFF
    assert np.isnan(dl16.decode([0x7FFF, 0xFFFF])).all()
    assert dl16.encode([0.0, -0.0]).tolist() == [0, 0x8000]
    assert dl16.round_trip(1 + 2.0**-10) == 1 + 2.0**-9
