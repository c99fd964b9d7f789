"""The device's data formats: names in files, widths, and elements per stick.

Names read as SEN, sign bits, exponent bits, mantissa bits. Encoding lives in `number_formats`, so that naming a format
does not import numpy.

Decision: docs/decisions/0004-formats-and-arrangement.md
Decision: docs/decisions/0019-dl16-codec-apart.md
"""

from __future__ import annotations

from dataclasses import dataclass

from spyre_mlir.hw.spec import STICK_BYTES

BITS_PER_BYTE = 8


@dataclass(frozen=True)
class DeviceFormat:
    """One entry of the `dataFormat_` vocabulary.

    Args:
        name: the spelling in files.
        bits: width of one element.
        floating: whether the bits are a floating-point number.
    """

    name: str
    bits: int
    floating: bool

    @property
    def word_length(self) -> int | float:
        """Bytes per element as files write it: an integer, or 0.5 for four-bit elements."""
        whole, rest = divmod(self.bits, BITS_PER_BYTE)
        return self.bits / BITS_PER_BYTE if rest else whole

    @property
    def integers(self) -> tuple[int, int]:
        """Bounds of the range in which every integer is exact.

        In a format of floats the limit itself is left out: a sum just beyond it is rounded to it.
        """
        if self.floating:
            return -EXACT_INTEGERS[self.name] + 1, EXACT_INTEGERS[self.name] - 1
        if self.name.startswith("SENUINT"):
            return 0, 2**self.bits - 1
        return -(2 ** (self.bits - 1)), 2 ** (self.bits - 1) - 1

    def elements_per_stick(self) -> int:
        """Number of elements in one stick."""
        return STICK_BYTES * BITS_PER_BYTE // self.bits


# Draft SuperDSC interface specification and torch-spyre csrc/types_mapping.h; certain for the formats with a comment
# of their own, likely for the rest.
_ALL = (
    DeviceFormat("SEN169_FP16", 16, True),  # DLFloat16, the native format; certain
    DeviceFormat("IEEE_FP32", 32, True),  # vector unit only; certain
    DeviceFormat("BFLOAT16", 16, True),
    DeviceFormat("SEN143_FP8", 8, True),
    DeviceFormat("SEN152_FP8", 8, True),
    DeviceFormat("SENINT2", 2, False),
    DeviceFormat("SENINT4", 4, False),
    DeviceFormat("SENINT8", 8, False),
    DeviceFormat("SENINT16", 16, False),
    DeviceFormat("SENUINT2", 2, False),
    DeviceFormat("SENUINT32", 32, False),  # index tensors; certain
    DeviceFormat("IEEE_INT32", 32, False),  # certain
)

# What stands for infinity in DL16, which has none of its own: the largest half (torch-spyre mask constants; likely).
INFINITY_STAND_IN = 65504.0

# The largest number of SEN143_FP8 (torch float8_e4m3fn; certain).
FP8_LARGEST = 448.0

# The largest finite float32: binary32 of IEEE 754; certain.
FP32_LARGEST = (2.0 - 2.0**-23) * 2.0**127

# The largest DL16 number (IBM zDNN `DLF16_MAX`; certain).
DL16_LARGEST = 2.0**32 * (2 - 2.0**-8)

# The smallest positive DL16 number; half of it and less is 0 (from the definition of the format; inferred).
DL16_SMALLEST = 2.0**-31 * (1 + 2.0**-9)

# Every whole number up to this one is exact: one more than the bits of the fraction (definitions of the formats).
EXACT_INTEGERS = {"SEN169_FP16": 2**10, "IEEE_FP32": 2**24, "BFLOAT16": 2**8, "SEN143_FP8": 2**4, "SEN152_FP8": 2**3}

FORMATS: dict[str, DeviceFormat] = {entry.name: entry for entry in _ALL}

DL16 = FORMATS["SEN169_FP16"]
FP32 = FORMATS["IEEE_FP32"]
INDEX = FORMATS["SENUINT32"]
FP8 = FORMATS["SEN143_FP8"]
INT32 = FORMATS["IEEE_INT32"]


def device_format(name: str) -> DeviceFormat:
    """Look up a format by its name in files.

    Raises:
        KeyError: the name is not one of the device's formats; the message lists them.
    """
    if name not in FORMATS:
        raise KeyError(f"unknown device format {name!r}; known: {', '.join(FORMATS)}")
    return FORMATS[name]
