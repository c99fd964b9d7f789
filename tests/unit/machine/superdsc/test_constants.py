"""Constants of files: bit patterns of three formats, by their definitions."""

from __future__ import annotations

import math

import pytest

from spyre_mlir.dialects.superdsc.model.descriptor import Constant, Descriptor, OpClass
from spyre_mlir.machine.superdsc.constants import decode_constant, mask_value


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


@pytest.mark.parametrize(
    ("op_func", "bits", "unbounded", "value"),
    [
        ("max", 0xDE00, False, -(2.0**16)),  # exponent 47 - 31
        ("max", 0xDE00, True, -math.inf),
        ("min", 0x5E00, True, math.inf),
        ("max", 0x3E00, True, 1.0),  # a number that a file chose
        ("sum", 0, True, 0.0),
    ],
)
def test_a_mask_is_infinite_where_numbers_are(op_func: str, bits: int, unbounded: bool, value: float) -> None:
    constants = (Constant("samv-maskvalue", "SEN169_FP16", bits),)
    view = Descriptor(0, op_func, "sfp", OpClass.REDUCTION, (), (), constants, mask_constant=0)
    assert mask_value(view, unbounded=unbounded) == value
