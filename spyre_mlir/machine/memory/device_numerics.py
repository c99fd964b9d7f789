"""Memory in device numerics: values of the hardware's bytes, rounded at every store.

Every value of every format but the 32-bit integers' is a float32, so an element is kept as its value; `raw` gives
the bytes. Functions compute on float32 between memory and memory (`MachineOptions.arithmetic`), which for a sum,
difference, product, quotient or root of two DLFloat16 numbers gives, after the one rounding of the store, what
unbounded precision would: 24 bits are more than twice 10 plus two. On 32-bit integers they compute on float64.
What public sources leave open is a setting of `MachineOptions`, or said here:

* A result that is infinite or NaN, division by zero included, is stored as the merged symbol 0x7FFF and reads as NaN
  from then on; memory holds one spelling of it, its sign is no information (US patent application 2019/0369960).
* NaN goes through every function as numpy takes it: comparisons with it are 0, except "not equal"; a maximum or
  minimum of it is NaN; a select takes the first branch, because NaN is not 0.
* An integer result beyond its format is a fault; where the run goes on, it keeps its low bits. One computed from NaN
  is 0.
* The two 8-bit floats are float8_e4m3fn and float8_e5m2fnuz, converted by ml_dtypes.

Decision: docs/decisions/0003-device-numerics.md
Decision: docs/decisions/0026-what-device-numerics-round.md
Decision: docs/decisions/0043-elements-by-value.md
"""

from __future__ import annotations

from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
from typing_extensions import override

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.hw.formats import DL16, FORMATS, FP32, INDEX, INFINITY_STAND_IN, INT32
from spyre_mlir.hw.number_formats import dl16, encoding
from spyre_mlir.hw.number_formats.rounding import round_into
from spyre_mlir.hw.spec import SPYRE, SpyreSpec
from spyre_mlir.machine.memory.exact import Floats, Memory, Stored, element_bytes
from spyre_mlir.machine.memory.shadow import Tags, spread
from spyre_mlir.machine.options import MachineOptions

# Formats whose values are numbers of a small floating-point type; torch-spyre csrc/types_mapping.h for the fp8 pair.
_LIBRARY: dict[str, np.dtype[Any]] = {
    "BFLOAT16": np.dtype(ml_dtypes.bfloat16),
    "SEN143_FP8": np.dtype(ml_dtypes.float8_e4m3fn),
    "SEN152_FP8": np.dtype(ml_dtypes.float8_e5m2fnuz),
}
# The host's number per element: it has twice the element's bytes, and every value of the format.
_STORED: dict[str, np.dtype[Any]] = {
    DL16.name: np.dtype(np.float32),
    FP32.name: np.dtype(np.float32),
    INT32.name: np.dtype(np.int32),
    INDEX.name: np.dtype(np.uint32),
    "BFLOAT16": np.dtype(np.float32),
    "SEN143_FP8": np.dtype(np.float16),
    "SEN152_FP8": np.dtype(np.float16),
    "SENINT8": np.dtype(np.int8),
    "SENINT16": np.dtype(np.int16),
}
_STAND_IN = float(dl16.round_trip(INFINITY_STAND_IN))


def stored_type(format_name: str) -> np.dtype[Any]:
    """Return the numpy type of a format's values, of twice the size.

    Raises:
        UnsupportedError: the machine has no arithmetic for the format.
    """
    if format_name not in _STORED:
        hint = f"it has {', '.join(_STORED)}; numerics='exact' takes every format of whole bytes"
        raise UnsupportedError(f"device numerics have no format {format_name} yet", hint=hint)
    return _STORED[format_name]


class DeviceMemory(Memory):
    """Memory that holds the same values as the hardware.

    Args:
        spec: the machine.
        options: what becomes of values beyond the largest code, and of partial sums.
    """

    scale = 2
    unbounded = False

    def __init__(self, spec: SpyreSpec = SPYRE, options: MachineOptions | None = None) -> None:
        super().__init__(spec)
        settings = MachineOptions(numerics="device") if options is None else options
        self._overflow = dl16.OverflowRule(settings.overflow)
        self._wide = settings.arithmetic == "float64"
        self.partial_sums_are_wide = settings.partial_sums == "wide"

    def stored_type(self, format_name: str) -> np.dtype[Any]:
        """Return the numpy type of the format's values.

        Raises:
            UnsupportedError: the machine has no arithmetic for the format.
        """
        return stored_type(format_name)

    def put(self, target: Stored, values: npt.ArrayLike, format_name: str, *, from_host: bool = False) -> None:
        """Round to the format, and store.

        From the host, infinities become the largest halves: DL16 has one symbol for them and NaN, and masks are made
        of them.
        """
        given = np.asarray(values)
        if format_name == DL16.name:
            before = self.tally.specials
            self._round(target, given)
            if from_host and self.tally.specials != before:
                infinite = np.isinf(given)
                target[infinite] = np.copysign(_STAND_IN, given[infinite])
                self.tally.specials = before
        elif format_name in _LIBRARY:
            with np.errstate(all="ignore"):
                target[...] = given.astype(_LIBRARY[format_name])
        elif target.dtype.kind == "f":
            with np.errstate(over="ignore"):
                target[...] = given
        else:
            self.count_integers(given, format_name)
            wide = given.astype(np.float64)
            whole = np.fmod(np.where(np.isfinite(wide), wide, 0.0), 2.0 ** FORMATS[format_name].bits)
            target[...] = whole.astype(np.int64).astype(target.dtype)

    @override
    def move(self, target: Stored, values: npt.NDArray[Any], format_name: str) -> None:
        """Store values that are rounded already."""
        if values.dtype == target.dtype:
            np.copyto(target, values)
        else:
            self.put(target, values, format_name)

    @override
    def put_codes(self, target: Stored, codes: npt.NDArray[Any], format_name: str) -> None:
        """Store what the host sends as the device's bits."""
        if format_name == DL16.name:
            # All values are in range, so the mode changes nothing but numpy's way to them.
            np.take(_sent_numbers(), codes, out=target, mode="clip")
        else:
            super().put_codes(target, codes, format_name)

    def _round(self, target: Stored, given: Floats) -> None:
        if given.dtype == np.float32:
            round_into(target, spread(given, target.shape), self._overflow, self.tally)
            return
        # Two roundings in a row are not one, so wider numbers go to the format directly.
        wide = given.astype(np.float64)
        self.tally.specials += int((~np.isfinite(wide)).sum())
        size = np.abs(wide)
        self.tally.beyond(size[(size >= dl16.BEYOND_LARGEST) & np.isfinite(size)])
        target[...] = dl16.round_trip(wide, self._overflow)

    @override
    def numbers(self, stored: Stored, format_name: str) -> Floats:
        """Return values as functions compute on them."""
        if stored.dtype == np.float32 and not self._wide:
            return stored
        narrow = stored.dtype.itemsize <= np.dtype(np.float16).itemsize and not self._wide
        return stored.astype(np.float32 if narrow else np.float64)

    def partial_sum(self, values: Floats, format_name: str) -> Floats:
        """Return the sum, wide or rounded to the format of the result."""
        if self.partial_sums_are_wide:
            return values
        rounded = np.empty(values.shape, self.stored_type(format_name))
        self.put(rounded, values, format_name)
        return self.numbers(rounded, format_name)

    def raw(self, address: int, count: int) -> bytes:
        """Return the hardware's bytes; zeros where nothing was written."""
        region = self.locate(address, address + count)
        low = address - region.base
        made = np.zeros(count, dtype=np.uint8)
        tags: Tags = region.states.tags_of(low, count)
        for name, at in region.states.elements_of(tags):
            values = self._elements(region, element_bytes(name), name)[low + at]
            codes = _codes(values, name)
            size = codes.dtype.itemsize
            for place in range(size):
                made[at + place] = codes.view(np.uint8).reshape(-1, size)[:, place]
        return made.tobytes()


@cache
def _sent_numbers() -> Stored:
    """What memory holds after each code of DLFloat16 was sent, by code."""
    codes = np.arange(1 << DL16.bits, dtype=np.uint16)
    numbers = np.empty(codes.shape, _STORED[DL16.name])
    DeviceMemory().put(numbers, encoding.decode(codes, DL16.name), DL16.name, from_host=True)
    numbers.setflags(write=False)
    return numbers


def _codes(values: Stored, format_name: str) -> Stored:
    """Elements as the device's bits."""
    if format_name == DL16.name:
        return encoding.encode(values, format_name)
    return values.astype(_LIBRARY.get(format_name, values.dtype))
