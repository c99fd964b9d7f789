"""Zeroed memory of which few places are used, far apart."""

from __future__ import annotations

import mmap

import numpy as np
import numpy.typing as npt

# numpy asks for huge pages, and the operating system clears all of one at the first write to any byte in it. Where
# every core writes a few sticks of its scratchpad, that is nearly all of the memory of the card's scratchpads.
_HUGE = 1 << 21


def sparse_zeros(count: int) -> npt.NDArray[np.uint8]:
    """Return so many zero bytes; those that are never written cost nothing."""
    if count < _HUGE or not hasattr(mmap, "MAP_ANONYMOUS"):
        return np.zeros(count, dtype=np.uint8)
    pages = mmap.mmap(-1, count, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return np.frombuffer(pages, dtype=np.uint8)
