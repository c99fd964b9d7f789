"""Trips of loops around a group of kernels that are worth a try.

More trips read what has no rows more often, fewer trips hold more in the scratchpads. So the counts to try are those
about the least number with which everything that the group makes and uses fits, and for one loop those that leave a
trip without a batch, because products are quicker without one.

A count of pieces that no number of cores divides well is cut unequally: blocks of which every core has as many pieces,
then the remainder in a block of its own. Several cores may make the same of its pieces, each for other rows.

Decision: docs/decisions/0168-cores-make-the-same-columns-of-a-weight.md
Decision: docs/decisions/0172-narrow-weights-in-blocks-and-parts.md
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import gcd

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


@dataclass(frozen=True)
class TripSpan:
    """Trips of a loop over equal blocks of something that consists of pieces.

    Attributes:
        trips: how many blocks.
        size: pieces in each block.
        pieces: in all.
        start: pieces before the first block.
        copies: how many cores make the same pieces of a weight, each for a part of the rows of its products.
    """

    trips: int
    size: int
    pieces: int
    start: int = 0
    copies: int = 1

    @classmethod
    def of_all(cls, trips: int) -> TripSpan:
        """All pieces, in so many blocks."""
        return cls(trips, 1, trips)

    @property
    def unit(self) -> int:
        """Pieces that an index counts in: every block starts at a whole number of them."""
        return gcd(self.start, self.size)

    @property
    def bounds(self) -> tuple[int, int, int]:
        """The loop over its blocks, counted in units: lower bound, upper bound and step."""
        low, step = self.start // self.unit, self.size // self.unit
        return low, low + self.trips * step, step

    def extent(self, whole: int) -> int:
        """The part of an extent that a block has."""
        return whole * self.size // self.pieces

    def stride(self, whole: int) -> int:
        """The part of an extent that a unit has."""
        return whole * self.unit // self.pieces


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


def shared_equally(pieces: int, cores: int, needed: int, rows: int = 1) -> list[tuple[TripSpan, TripSpan]]:
    """Return blocks of which all cores have as many pieces, and those of the remainder; none if there is no remainder.

    Args:
        pieces: to share.
        cores: that share them.
        needed: equal trips with which the intermediates of all pieces fit the scratchpads.
        rows: of which several cores may have parts, with the same pieces of the remainder.
    """
    rounds, rest = divmod(pieces, cores)
    if rounds == 0 or rest == 0:
        return []
    most = pieces - rest
    copies = {1, most_copies(rest, rows, cores)}
    behind = [TripSpan(1, rest, pieces, most, n) for n in sorted(copies)]
    counts = _near(divisors(rounds, rounds), -(-needed * most // pieces), 1)
    return [(TripSpan(n, most // n, pieces), last) for n in counts for last in behind]


def most_copies(pieces: int, rows: int, cores: int) -> int:
    """Return the most copies of few pieces for which there are cores, and equal parts of the rows."""
    return divisors(rows, cores // pieces)[-1]


def _near(counts: Sequence[int], needed: int, around: int) -> Iterator[int]:
    place = bisect_left(counts, needed)
    return iter(counts[max(0, place - 1) : place + around])


__all__ = ["LoopChoice", "TripSpan", "Trips", "most_copies", "shared_equally", "worth_trying"]
