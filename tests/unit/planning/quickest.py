"""The quickest division of kernels, however long it takes."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from spyre_mlir.planning.divisions import Division, Kernel, Prices, divide_within


def quickest(kernels: Sequence[Kernel], prices: Prices | None = None, width: int | None = None) -> Division:
    """Return the division that the search finds.

    Raises:
        ValueError: a kernel has no candidate.
    """
    found = divide_within(kernels, inf, prices, width)
    assert found is not None
    return found
