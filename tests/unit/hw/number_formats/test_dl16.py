"""DLFloat16 against its definition, exhaustively where that is possible.

Expected values come from exact rationals and from the published rule for halves, both written here.
"""

from __future__ import annotations

from bisect import bisect_right
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spyre_mlir.hw.number_formats import dl16

LARGEST = 0x7FFE
MERGED = 0x7FFF


def definition(code: int) -> Fraction:
    """Sign, six exponent bits with bias 31, nine fraction bits; no subnormals, and one zero."""
    magnitude = code & MERGED
    if magnitude == 0:
        return Fraction(0)
    value = Fraction(512 + (magnitude & 511), 512) * Fraction(2) ** ((magnitude >> 9) - 31)
    return -value if code & 0x8000 else value


MAGNITUDES = [definition(code) for code in range(MERGED)]


def nearest(value: Fraction) -> int:
    """The code of the nearest value, the larger magnitude of two at equal distance; saturates."""
    low = bisect_right(MAGNITUDES, abs(value)) - 1
    if low < LARGEST and MAGNITUDES[low + 1] - abs(value) <= abs(value) - MAGNITUDES[low]:
        low += 1
    return low | (0x8000 if value < 0 else 0)


def half_rule(bits: int) -> int:
    """The published table from half to DLFloat16: subnormals exactly, normals lose one bit, away from zero."""
    sign, exponent, mantissa = bits & 0x8000, (bits >> 10) & 31, bits & 1023
    if exponent == 0:
        if mantissa == 0:
            return sign
        top = mantissa.bit_length() - 1
        return sign | (top + 7) << 9 | (mantissa << (9 - top)) & 511
    if exponent == 31:
        return sign | MERGED
    return sign | (((exponent + 16) << 9) + ((mantissa + 1) >> 1))


def test_all_codes_come_back_and_grow() -> None:
    codes = np.arange(0x10000, dtype=np.uint16)
    values = dl16.decode(codes)
    merged = codes & MERGED == MERGED
    assert np.isnan(values[merged]).all() and merged.sum() == 2
    assert np.array_equal(dl16.encode(values[~merged]), codes[~merged])
    assert (np.diff(values[:MERGED]) > 0).all()
    assert (np.diff(values[0x8000 : 0x8000 + MERGED]) < 0).all()
    assert [Fraction(value) for value in values[:MERGED].tolist()] == MAGNITUDES


def test_all_finite_halves_follow_the_published_rule() -> None:
    bits = np.arange(0x10000, dtype=np.uint16)
    finite = bits[(bits >> 10) & 31 != 31]
    assert finite.size == 63_488
    expected = [half_rule(int(b)) for b in finite]
    for dtype in (np.float16, np.float32, np.float64):
        assert dl16.encode(finite.view(np.float16).astype(dtype)).tolist() == expected


def test_infinite_and_nan_halves_are_the_merged_symbol_with_their_sign() -> None:
    bits = np.asarray([0x7C00, 0xFC00, 0x7E00, 0xFE00], dtype=np.uint16)
    assert dl16.encode(bits.view(np.float16)).tolist() == [0x7FFF, 0xFFFF, 0x7FFF, 0xFFFF]


def test_codes_of_the_half_range_become_halves_exactly() -> None:
    codes = np.arange(16 << 9, 47 << 9, dtype=np.uint16)  # E = 16 is a subnormal half, E = 46 the largest binade
    values = dl16.decode(codes)
    assert np.array_equal(values.astype(np.float16).astype(np.float64), values)


@pytest.mark.parametrize(
    ("code", "half"),
    [
        (6 << 9, 0x0000),  # half of the smallest half: a tie, to the even zero
        (6 << 9 | 1, 0x0001),
        (7 << 9, 0x0001),
        (7 << 9 | 256, 0x0002),  # 1.5 of the smallest half: a tie, to even
        (5 << 9 | 511, 0x0000),
    ],
)
def test_small_codes_round_to_subnormal_halves(code: int, half: int) -> None:
    assert int(dl16.decode([code]).astype(np.float16).view(np.uint16)[0]) == half


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (0.5, 0x3C00),
        (0.25, 0x3A00),
        (1.0, 0x3E00),
        (2.0, 0x4000),
        (4.0, 0x4200),
        (2.0**-23, 0x1000),
        (1 / 256, 0x2E00),
        (65536.0, 0x5E00),
        (2.0**32, 0x7E00),
        (448.0, 0x4F80),
        (1 / 448, 0x2C49),
        (-0.5, 0xBC00),
        (-1e4, 0xD871),
        (65504.0, 0x5E00),  # the midpoint of 65472 and 65536
        (2.0**32 - 2.0**22, 0x7DFF),
        (8_573_157_376.0, 0x7FFE),
        (2.0**-31 * (1 + 1 / 512), 0x0001),
        (2.0**-32 * (1 + 1 / 512), 0x0001),  # the midpoint of zero and the smallest
        (float(np.nextafter(2.0**-32 * (1 + 1 / 512), 0)), 0x0000),
        (2.0**-31, 0x0001),  # would be code 0, which is zero
        (5e-324, 0x0000),
        (-0.0, 0x8000),
    ],
)
def test_landmarks(value: float, code: int) -> None:
    assert int(dl16.encode(value)) == code


@pytest.mark.parametrize("value", [8_573_157_377.0, 1e10, 3.4028234663852886e38, 1.7976931348623157e308])
def test_too_large_saturates_or_is_merged(value: float) -> None:
    assert dl16.encode([value, -value]).tolist() == [0x7FFE, 0xFFFE]
    beyond = value >= 2.0**32 * (1 + 510.5 / 512)  # smaller ones still round to the largest code
    expected = [0x7FFF, 0xFFFF] if beyond else [0x7FFE, 0xFFFE]
    assert dl16.encode([value, -value], dl16.OverflowRule.NAN).tolist() == expected


@pytest.mark.parametrize("overflow", list(dl16.OverflowRule))
def test_infinities_and_nan_are_the_merged_symbol(overflow: dl16.OverflowRule) -> None:
    assert dl16.encode([np.inf, -np.inf], overflow).tolist() == [0x7FFF, 0xFFFF]
    assert int(dl16.encode(np.nan, overflow)) & MERGED == MERGED


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
@example(65504.0)
@example(2.0**-126)
def test_float32_rounds_as_exact_rationals_do(value: float) -> None:
    expected = nearest(Fraction(value)) if value else 0x8000 * (np.signbit(value))
    got = int(dl16.encode(np.float32(value)))
    assert got == expected or (got & MERGED == 0 and expected & MERGED == 0)


@given(st.integers(0, LARGEST - 1), st.sampled_from([-1, 0, 1]), st.booleans())
def test_ties_go_away_from_zero(code: int, nudge: int, negative: bool) -> None:
    middle = float((MAGNITUDES[code] + MAGNITUDES[code + 1]) / 2)
    value = float(np.nextafter(middle, middle + nudge)) if nudge else middle
    expected = (code if nudge < 0 else code + 1) | (0x8000 if negative else 0)
    assert int(dl16.encode(-value if negative else value)) == expected


def test_arrays_of_float32_round_as_exact_rationals_do_at_every_midpoint() -> None:
    """A float32 on the midpoint of two codes, and its neighbours; the numbers are not widened on the way."""
    middles = [(low + high) / 2 for low, high in zip(MAGNITUDES[:-1:53], MAGNITUDES[1::53], strict=False)]
    exact = np.asarray([float(middle) for middle in middles], np.float32)
    values = np.concatenate([exact, np.nextafter(exact, np.float32(0)), np.nextafter(exact, np.float32(np.inf))])
    for some in (values, -values):
        assert dl16.encode(some).tolist() == [nearest(Fraction(value)) for value in some.tolist()]
    special = np.asarray([np.nan, np.inf, -np.inf, 0.0, -0.0, 3e38, -1e-40], np.float32)
    assert dl16.encode(special)[1:].tolist() == [MERGED, 0x8000 | MERGED, 0, 0x8000, 0x7FFE, 0x8000]
    assert int(dl16.encode(special)[0]) & MERGED == MERGED
