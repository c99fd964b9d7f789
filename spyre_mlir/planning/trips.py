"""Trips of loops around a group of kernels that are worth a try.

More trips read what has no rows more often, fewer trips hold more in the scratchpads. So the counts to try are those
about the least number with which everything that the group makes and uses fits, and for one loop those that leave a
trip without a batch, because products are quicker without one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from spyre_mlir.hw.division import divisors


@dataclass(frozen=True)
class LoopChoice:
    """A loop that a group of kernels shares.

    Attributes:
        pieces: blocks that it can be cut into at most.
    """

    pieces: int

    def counts(self, most: int) -> list[int]:
        """Numbers of equal trips, ascending."""
        return divisors(self.pieces, most)


Trips = tuple[int, int]  # of the outer and of the inner loop; 1 for no loop


def worth_trying(outer: LoopChoice, inner: LoopChoice | None, needed: int, most: int, around: int = 2) -> list[Trips]:
    """Return pairs of trip counts to try.

    Args:
        outer: the loop around everything.
        inner: a loop inside of it, if any.
        needed: trips with which the intermediates fit the scratchpads.
        most: trips that a loop can make.
        around: how many counts from the least that fits upwards; one less is tried below it.
    """
    if inner is None:
        counts = outer.counts(most)
        picked = {*_near(counts, needed, around), counts[-1]}
        return [(count, 1) for count in sorted(picked) if count > 1]
    found: list[Trips] = []
    for first in outer.counts(most)[1:]:
        counts = inner.counts(most // first)
        found += [(first, second) for second in _near(counts, -(-needed // first), around) if second > 1]
    return found


def _near(counts: Sequence[int], needed: int, around: int) -> Iterator[int]:
    place = bisect_left(counts, needed)
    return iter(counts[max(0, place - 1) : place + around])


__all__ = ["LoopChoice", "Trips", "worth_trying"]
