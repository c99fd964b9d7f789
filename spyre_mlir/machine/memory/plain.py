"""Memory without numerics: every element is a number of the host, nothing is rounded, and nothing about data checked.

For looking at big models. An element of a floating-point format is a float32, of 8 bits a float16, as in
`spyre_mlir.machine.memory.device_numerics`; what was written where is not kept, so bytes that nothing wrote read as 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from spyre_mlir.machine.memory.device_numerics import stored_type
from spyre_mlir.machine.memory.exact import Floats, Memory, Stored


class PlainMemory(Memory):
    """Memory of numerics ``none``."""

    scale = 2
    tracked = False

    def stored_type(self, format_name: str) -> np.dtype[Any]:
        """Return the numpy type of the format's numbers.

        Raises:
            UnsupportedError: the machine has no arithmetic for the format.
        """
        return stored_type(format_name)

    @override
    def put(self, target: Stored, values: npt.ArrayLike, format_name: str, *, from_host: bool = False) -> None:
        """Store values as they are; of integers as many bits as there are."""
        with np.errstate(all="ignore"):
            target[...] = values

    @override
    def numbers(self, stored: Stored, format_name: str) -> Floats:
        """Return values as functions compute on them: float32, or float64 for integers."""
        if stored.dtype == np.float32:
            return stored
        return stored.astype(np.float32 if stored.dtype.itemsize <= np.dtype(np.float16).itemsize else np.float64)

    @override
    def partial_sum(self, values: Floats, format_name: str) -> Floats:
        """Return the values themselves."""
        return values
