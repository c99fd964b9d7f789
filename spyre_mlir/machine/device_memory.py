"""Memory in device numerics: the bytes the hardware has, rounded wherever something is stored.

Functions compute on float64 between memory and memory, so each stored result is rounded once, from a value that is
as good as exact. What public sources leave open is a setting of `MachineOptions`, or said here:

* A result that is infinite or NaN, division by zero included, is stored as the merged symbol 0x7FFF and reads as NaN
  from then on; memory holds one spelling of it, its sign is no information (US patent application 2019/0369960).
* NaN goes through every function as numpy takes it: comparisons with it are 0, except "not equal"; a maximum or
  minimum of it is NaN; a select takes the first branch, because NaN is not 0.
* An integer result keeps its low 32 bits; one computed from NaN is 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.hw import dl16
from spyre_mlir.hw.formats import DL16, FP32, INDEX, INFINITY_STAND_IN, INT32
from spyre_mlir.hw.spec import SPYRE, SpyreSpec
from spyre_mlir.machine.memory import SLOT_BYTES, ExactMemory, Floats, Memory, Stored
from spyre_mlir.machine.options import MachineOptions

_INTEGER_RANGE = 2.0**INT32.bits
_STORED: dict[str, np.dtype[Any]] = {
    DL16.name: np.dtype(np.uint16),
    FP32.name: np.dtype(np.float32),
    INT32.name: np.dtype(np.int32),
    INDEX.name: np.dtype(np.uint32),
}


class DeviceMemory(Memory):
    """Memory that holds what the hardware's would.

    Args:
        spec: the machine.
        options: what becomes of values beyond the largest code, and of partial sums.
    """

    slot_size = SLOT_BYTES

    def __init__(self, spec: SpyreSpec = SPYRE, options: MachineOptions | None = None) -> None:
        super().__init__(spec)
        settings = MachineOptions(numerics="device") if options is None else options
        self._overflow = dl16.Overflow(settings.overflow)
        self.partial_sums_are_wide = settings.partial_sums == "wide"

    def stored_type(self, format_name: str) -> np.dtype[Any]:
        """DLFloat16 codes, or the numpy type of the same name.

        Raises:
            UnsupportedError: the machine has no arithmetic for the format.
        """
        if format_name not in _STORED:
            hint = f"it has {', '.join(_STORED)}; numerics='exact' takes every format of whole slots"
            raise UnsupportedError(f"device numerics have no format {format_name} yet", hint=hint)
        return _STORED[format_name]

    def encode(self, values: npt.ArrayLike, format_name: str) -> Stored:
        """Round to the format."""
        kind, wide = self.stored_type(format_name), np.asarray(values, dtype=np.float64)
        if format_name == DL16.name:
            codes = dl16.encode(wide, self._overflow)
            codes[codes & dl16.NAN_CODE == dl16.NAN_CODE] = dl16.NAN_CODE
            return codes
        if kind.kind == "f":
            with np.errstate(over="ignore"):
                return wide.astype(kind)
        whole = np.fmod(np.where(np.isfinite(wide), wide, 0.0), _INTEGER_RANGE)
        return whole.astype(np.int64).astype(kind)

    def from_host(self, values: Floats, format_name: str) -> Floats:
        """Infinities become the largest halves: DL16 has one symbol for them and NaN, and masks are made of them."""
        if format_name != DL16.name:
            return values
        return np.where(np.isinf(values), np.copysign(INFINITY_STAND_IN, values), values)

    def decode(self, stored: Stored, format_name: str) -> Floats:
        """Values of codes; every format's are exact in float64."""
        return dl16.decode(stored) if format_name == DL16.name else stored.astype(np.float64)

    def partial_sum(self, values: Floats, format_name: str) -> Floats:
        """Wide, or rounded to the format of the result."""
        return values if self.partial_sums_are_wide else self.decode(self.encode(values, format_name), format_name)


def memory_for(options: MachineOptions, spec: SpyreSpec = SPYRE) -> Memory:
    """Empty memory of the numerics that a run asks for."""
    return ExactMemory(spec) if options.numerics == "exact" else DeviceMemory(spec, options)
