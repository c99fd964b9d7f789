"""Rounding to eight-bit floats: 1 sign, 4 exponent and 3 fraction bits with bias 7, worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from spyre_mlir.hw.number_formats.fp8 import encode, round_trip


@pytest.mark.parametrize(
    ("value", "rounded"),
    [
        (1.0, 1.0),
        (1.1, 1.125),
        (1.0625, 1.0),  # halfway between 1 and 1.125: the even fraction
        (1.1875, 1.25),  # halfway between 1.125 and 1.25: the even fraction
        (-17.0, -16.0),  # steps of 2
        (2.0**-9, 2.0**-9),  # the smallest subnormal
        (2.0**-11, 0.0),
        (447.0, 448.0),
        (449.0, 448.0),
        (1e6, 448.0),
        (-1e6, -448.0),
        (np.inf, 448.0),
    ],
)
def test_the_nearest_number_of_the_format(value: float, rounded: float) -> None:
    assert round_trip(np.array([value])).tolist() == [rounded]


def test_nan_stays() -> None:
    assert np.isnan(round_trip(np.array([np.nan]))).all()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_the_type_of_the_numbers_is_kept(dtype: type[np.floating]) -> None:
    assert round_trip(np.array([[3.1, 500.0]], dtype)).dtype == dtype


def test_codes_have_eight_bits() -> None:
    assert encode(np.array([1.0, -448.0, 1e6])).view(np.uint8).tolist() == [0x38, 0xFE, 0x7E]
