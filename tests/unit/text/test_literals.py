"""Floats spelled as their bits, against the fields of IEEE 754 and, for bf16, the upper half of binary32."""

from __future__ import annotations

import math
import struct

import pytest
from xdsl.dialects.builtin import AnyFloat, bf16, f16, f32, f64

from spyre_mlir.text.literals import bits_text, is_hex, value_of_bits, value_of_untyped_bits


@pytest.mark.parametrize(
    ("text", "hexadecimal"), [("0x7C00", True), ("0X1f", True), ("1.5", False), ("07", False), ("x0", False)]
)
def test_hexadecimal_literals_are_told_by_their_prefix(text: str, hexadecimal: bool) -> None:
    assert is_hex(text) is hexadecimal


def test_bits_are_spelled_with_all_digits_the_highest_byte_first() -> None:
    assert bits_text(struct.pack("<e", math.inf)) == "0x7C00"
    assert bits_text(struct.pack("<f", 2.0**-149)) == "0x00000001"
    assert bits_text(struct.pack("<d", -math.inf)) == "0xFFF0000000000000"


@pytest.mark.parametrize(
    ("bits", "type_", "value"),
    [
        (0x3C00, f16, 1.0),
        (0xFC00, f16, -math.inf),
        (0x3F80, bf16, 1.0),
        (0x3FC00000, f32, 1.5),
        (0xFFFFFFFFFFFFFFFF, f64, math.nan),
        (0x4000000000000000, f64, 2.0),
        (0, f16, 0.0),
    ],
)
def test_bits_of_a_type(bits: int, type_: AnyFloat, value: float) -> None:
    found = value_of_bits(bits, type_)
    assert found == value or (math.isnan(found) and math.isnan(value))


@pytest.mark.parametrize(
    ("bits", "type_", "message"),
    [
        (0x10000, f16, "float literal of f16 takes 4 hexadecimal digits, got 0x10000"),
        (0x100000000, f32, "float literal of f32 takes 8 hexadecimal digits, got 0x100000000"),
        (-1, f64, "float literal of f64 takes 16 hexadecimal digits, got -0x1"),
    ],
)
def test_bits_that_do_not_fit_are_refused(bits: int, type_: AnyFloat, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        value_of_bits(bits, type_)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0x7C00", math.inf),  # f16; of bf16 a number
        ("0xFC00", -math.inf),
        ("0x7F80", math.inf),  # bf16; of f16 a NaN that printers do not write
        ("0xFF80", -math.inf),
        ("0x3F800000", 1.0),
        ("0xBFF0000000000000", -1.0),
    ],
)
def test_bits_with_one_meaning_need_no_type(text: str, value: float) -> None:
    assert value_of_untyped_bits(text) == value


@pytest.mark.parametrize("text", ["0x7E00", "0xFE00", "0x7FC0", "0xFFC0", "0x7FC00000"])
def test_quiet_nans_of_either_half_width_type_are_known(text: str) -> None:
    found = value_of_untyped_bits(text)
    assert found is not None
    assert math.isnan(found)


@pytest.mark.parametrize("text", ["0x3C00", "0x0000", "0x7C01", "0x7C0", "0x7F8000000", "0x"])
def test_bits_with_more_meanings_or_none_are_not_decided(text: str) -> None:
    assert value_of_untyped_bits(text) is None
