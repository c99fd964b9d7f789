"""Sizes in bytes as users write them, and numbers of things as they read them."""

from __future__ import annotations

_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def read_size(text: str) -> int:
    """Parse bytes from a number with or without a unit: 800M, 16G.

    Raises:
        ValueError: the text is no size.
    """
    digits, unit = (text[:-1], text[-1]) if text[-1:].upper() in _UNITS else (text, "")
    if not digits.isascii() or not digits.isdigit() or int(digits) == 0:
        raise ValueError(f"{text!r} is no size such as 800M or 16G")
    return int(digits) * _UNITS.get(unit.upper(), 1)


def counted(number: int, noun: str, verb: str = "") -> str:
    """Return a count with its noun: 1 kernel, 2 launches; with a verb in its form: 1 kernel rounds, 2 kernels round."""
    ending = "es" if noun.endswith("ch") else "s"
    text = f"{number:,} {noun}{ending * (number != 1)}"
    return f"{text} {verb}{'s' * (number == 1)}" if verb else text
