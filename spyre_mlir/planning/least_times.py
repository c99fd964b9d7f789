"""Times that no division of a sequence of kernels is below, by the slices in which its kernels can agree on buffers.

A buffer that two kernels see in no common slices is read from device memory by one of them whatever the plan. So a
search for a division within a time may end before it begins, and leaves ways on that the kernels behind make too long.

Decision: docs/decisions/0165-what-is-known-is-not-asked-again.md
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import accumulate

from spyre_mlir.planning.divided_kernels import OUTSIDE, Kernel, Prices

ROUNDING = 1e-12
_NONE = frozenset[Hashable]()

Slices = Mapping[int, frozenset[Hashable]]
"""By buffer, the slices in which the scratchpads may hold it."""


def possible_slices(kernels: Sequence[Kernel], most_bytes: int) -> Slices:
    """Return slices of each buffer that every kernel that uses it can see, and for which a scratchpad has room.

    Args:
        kernels: in their order.
        most_bytes: of a scratchpad.
    """
    found: dict[int, frozenset[Hashable]] = {}
    for kernel in kernels:
        for place, buffer in enumerate(kernel.operands):
            begins = buffer not in found or place in kernel.copied  # to be held: then there has to be room
            fit = (c for c in kernel.candidates if not begins or c.sizes[place] <= most_bytes)
            seen = frozenset([c.views[place] for c in fit if c.views[place] is not None])
            # A kernel that sees a copy differently reads the original.
            found[buffer] = (
                found.get(buffer, seen) & seen if place not in kernel.copied else seen | found.get(buffer, seen)
            )
    return found


def latest_us(kernels: Sequence[Kernel], most_us: float, possible: Slices, prices: Prices) -> list[float]:
    """Return before each kernel, and behind the last, the most time that leaves enough for those that follow.

    Args:
        kernels: in their order.
        most_us: that all of them may take.
        possible: slices in which buffers may be held.
        prices: predicted times.
    """
    seen = [tuple([_NONE if b == OUTSIDE else possible[b] for b in k.operands]) for k in kernels]
    least = [prices.least_us(k.candidates, slices) for k, slices in zip(kernels, seen, strict=True)]
    behind = accumulate(reversed(least), initial=0.0)
    # Sums of the same times in another order may differ in the last digit.
    return [most_us * (1 + ROUNDING) - us for us in behind][::-1]


__all__ = ["ROUNDING", "Slices", "latest_us", "possible_slices"]
