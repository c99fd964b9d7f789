"""Constants of files: bit patterns of three formats, by their definitions."""

from __future__ import annotations

import math

import pytest

from spyre_mlir.dialects.superdsc.model.descriptor import Constant
from spyre_mlir.machine.superdsc.constants import decode_constant


@pytest.mark.parametrize(
    ("form", "bits", "value"),
    [
        ("SEN169_FP16", 0x3E00, 1.0),
        ("SEN169_FP16", 0xC100, -3.0),  # sign, exponent 32 - 31, fraction 1/2
        ("IEEE_FP32", 0x3F800000, 1.0),
        ("IEEE_FP32", 0xC0490FDB, -3.1415927410125732),
        ("IEEE_INT32", 7, 7.0),
        ("IEEE_INT32", 0xFFFFFFFF, -1.0),
        ("IEEE_INT32", 0x80000000, -(2.0**31)),
        ("SENUINT32", 0x3E00, 1.0),  # every other format's constants are DL16 codes
    ],
)
def test_a_constant_has_the_value_of_its_bits(form: str, bits: int, value: float) -> None:
    found = decode_constant(Constant("c", form, bits))
    assert isinstance(found, float)
    assert found == value


def test_the_merged_symbol_is_nan() -> None:
    assert math.isnan(decode_constant(Constant("c", "SEN169_FP16", 0x7FFF)))
