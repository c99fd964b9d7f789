"""Floating point literals as bits: the spelling of infinities and NaNs in MLIR text."""

from __future__ import annotations

import math

from xdsl.dialects.builtin import AnyFloat, BFloat16Type, Float16Type, Float32Type, Float64Type

_TYPES_OF_DIGITS: dict[int, tuple[AnyFloat, ...]] = {
    4: (Float16Type(), BFloat16Type()),
    8: (Float32Type(),),
    16: (Float64Type(),),
}


def is_hex(text: str) -> bool:
    """Return whether a literal is written in hexadecimal, which for a float means its bits."""
    return text[:2] in ("0x", "0X")


def bits_text(raw: bytes) -> str:
    """Spell the little-endian bytes of a float as MLIR does, all digits present."""
    return f"0x{raw[::-1].hex().upper()}"


def value_of_bits(bits: int, type_: AnyFloat) -> float:
    """Decode the bits of a float.

    Raises:
        ValueError: the number does not fit the width of the type.
    """
    size = type_.compile_time_size
    if bits < 0 or bits >> (8 * size):
        raise ValueError(f"float literal of {type_} takes {2 * size} hexadecimal digits, got {bits:#x}")
    return type_.unpack(bits.to_bytes(size, "little"), 1)[0]


def value_of_untyped_bits(text: str) -> float | None:
    """Decode a hexadecimal literal where the type is not known; None if it is ambiguous.

    Sixteen bits may be f16 or bf16, but no infinity of one is an infinity or the standard NaN of the
    other, and printers write finite values in decimal: so the text still has one meaning.
    """
    digits = text[2:]
    raw = bytes.fromhex(digits)[::-1] if len(digits) in _TYPES_OF_DIGITS else b""
    types = _TYPES_OF_DIGITS.get(len(digits), ())
    found = [type_.unpack(raw, 1)[0] for type_ in types if len(types) == 1 or raw in _standard_bits(type_)]
    return found[0] if len(found) == 1 else None


def _standard_bits(type_: AnyFloat) -> tuple[bytes, ...]:
    """Bytes of both infinities and of the quiet NaN with either sign, as Python writes them."""
    return tuple(type_.pack((value,)) for value in (math.inf, -math.inf, math.nan, -math.nan))
