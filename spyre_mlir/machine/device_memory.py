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
from spyre_mlir.hw import dl16, encoding
from spyre_mlir.hw.encoding import STORED_TYPES
from spyre_mlir.hw.spec import SPYRE, SpyreSpec
from spyre_mlir.machine.memory import SLOT_BYTES, ExactMemory, Floats, Memory, Stored
from spyre_mlir.machine.options import MachineOptions


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
        if format_name not in STORED_TYPES:
            hint = f"it has {', '.join(STORED_TYPES)}; numerics='exact' takes every format of whole slots"
            raise UnsupportedError(f"device numerics have no format {format_name} yet", hint=hint)
        return STORED_TYPES[format_name]

    def encode(self, values: npt.ArrayLike, format_name: str) -> Stored:
        """Round to the format."""
        self.stored_type(format_name)
        return encoding.encode(values, format_name, self._overflow)

    def from_host(self, values: Floats, format_name: str) -> Floats:
        """Infinities become the largest halves: DL16 has one symbol for them and NaN, and masks are made of them."""
        return encoding.from_host(values, format_name)

    def decode(self, stored: Stored, format_name: str) -> Floats:
        """Values of codes; every format's are exact in float64."""
        return encoding.decode(stored, format_name)

    def partial_sum(self, values: Floats, format_name: str) -> Floats:
        """Wide, or rounded to the format of the result."""
        return values if self.partial_sums_are_wide else self.decode(self.encode(values, format_name), format_name)


def memory_for(options: MachineOptions, spec: SpyreSpec = SPYRE) -> Memory:
    """Empty memory of the numerics that a run asks for."""
    return ExactMemory(spec) if options.numerics == "exact" else DeviceMemory(spec, options)
