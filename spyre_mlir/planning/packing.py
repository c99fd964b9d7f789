"""Exact packing of buffers with lifetimes into a memory: a search over canonical solutions, with a budget of steps.

A solution is canonical if every buffer lies on the memory's start or on a buffer below it, so pushing each buffer of
any solution down makes one. The search places buffers by ascending address: the next one lies on the highest buffer
below it, no lower than the one before. These facts keep it short:

* A section of time whose lowest possible address, plus all sizes that are yet to be placed there, exceeds the memory
  ends the branch.
* A buffer that is passed over must be raised by another one, by that one's size at least.
* A buffer that another one fits under completely is not next.
* Buffers that no lifetime of the rest connects are packed apart from each other.
* What could not be packed on a certain outline is not tried on it again.

The order in which equals are tried decides much, so several orders take turns, each with a growing share of the steps.
Ideas: MiniMalloc (Moffitt, ASPLOS 2023: canonical solutions, sections, dominance); certain.

Decision: docs/decisions/0127-own-search-packs-scratchpads.md
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import add

FIRST_SHARE_STEPS = 1_000
SHARE_GROWTH = 4


@dataclass(frozen=True)
class Buffer:
    """A buffer to be packed: bytes that it takes from point in time `lower` to before `upper`.

    Raises:
        ValueError: the lifetime is empty, or the buffer is.
    """

    lower: int
    upper: int
    size: int

    def __post_init__(self) -> None:
        if self.lower >= self.upper:
            raise ValueError(f"a buffer lives from {self.lower} to before {self.upper}; give it a later end")
        if self.size <= 0:
            raise ValueError(f"a buffer of {self.size} bytes; give it a positive size")


@dataclass(frozen=True)
class Packing:
    """Result of a search.

    Attributes:
        addresses: of the buffers, in their order; None if it found none.
        steps: placements that were tried.
        finished: whether that is certain; False if the steps ran out first.
    """

    addresses: tuple[int, ...] | None
    steps: int
    finished: bool


def live_peak(buffers: Sequence[Buffer]) -> int:
    """Return the most bytes that live at one time: no packing needs less."""
    changes = sorted(change for b in buffers for change in ((b.lower, b.size), (b.upper, -b.size)))
    peak = now = 0
    for _, change in changes:  # At one point in time the negative ones come first.
        now += change
        peak = max(peak, now)
    return peak


def pack(buffers: Sequence[Buffer], capacity: int, steps: int) -> Packing:
    """Return addresses such that no two buffers share a byte at one time, and all end within the capacity.

    Args:
        buffers: what to pack.
        capacity: bytes there are.
        steps: placements to try at most, over all orders; equal numbers find equal packings.
    """
    if live_peak(buffers) > capacity:
        return Packing(None, 0, True)
    problem = _Problem(buffers, capacity)
    used, share = 0, FIRST_SHARE_STEPS
    while used < steps:
        for order in _ORDERS:
            search = _Search(problem, problem.ranks(order), min(share, steps - used))
            found = search.run()
            used += search.steps
            if found or search.steps < search.most:
                return Packing(problem.in_given_order(search.addresses) if found else None, used, True)
        share *= SHARE_GROWTH
    return Packing(None, used, False)


class _Problem:
    """Buffers by start of their lifetimes, and the sections of time in which they meet.

    Sections are the largest groups of buffers that live at one time. Two buffers meet exactly if they share one.
    """

    def __init__(self, buffers: Sequence[Buffer], capacity: int) -> None:
        self.capacity = capacity
        points = _sections(buffers)
        spans = [tuple(n for n, at in enumerate(points) if b.lower <= at < b.upper) for b in buffers]
        self.given = sorted(range(len(buffers)), key=lambda n: (spans[n][0], spans[n][-1], n))
        self.buffers = [buffers[n] for n in self.given]
        self.first = [spans[n][0] for n in self.given]
        self.end = [spans[n][-1] + 1 for n in self.given]
        self.sizes = [b.size for b in self.buffers]
        self.totals = [0] * len(points)
        for size, first, end in zip(self.sizes, self.first, self.end, strict=True):
            for section in range(first, end):
                self.totals[section] += size
        self.neighbours = [
            [o for o in range(len(buffers)) if o != n and self.first[o] < self.end[n] and self.first[n] < self.end[o]]
            for n in range(len(buffers))
        ]

    def ranks(self, order: _Order) -> list[int]:
        """Return each buffer's rank among equals, for an order."""
        ranked = sorted(range(len(self.buffers)), key=lambda n: order(self, n))
        return [place for _, place in sorted(zip(ranked, range(len(ranked)), strict=True))]

    def in_given_order(self, addresses: Sequence[int]) -> tuple[int, ...]:
        """Return addresses in the order in which the buffers were given."""
        return tuple(address for _, address in sorted(zip(self.given, addresses, strict=True)))

    def crowd(self, number: int) -> int:
        """Return the most bytes that live at one time during a buffer's life."""
        return max(self.totals[self.first[number] : self.end[number]])


def _sections(buffers: Sequence[Buffer]) -> list[int]:
    """Return a point in time for each largest group: the last start before an end."""
    ends = {b.upper for b in buffers}
    points, start = list[int](), None
    for at in sorted({b.lower for b in buffers} | ends):
        if at in ends and start is not None:
            points.append(start)
            start = None
        if any(b.lower == at for b in buffers):
            start = at
    return points


_Order = Callable[[_Problem, int], tuple[int, ...]]


def _by_area(problem: _Problem, n: int) -> tuple[int, ...]:
    b = problem.buffers[n]
    return -b.size * (b.upper - b.lower), b.lower - b.upper, -problem.crowd(n)


def _by_crowd(problem: _Problem, n: int) -> tuple[int, ...]:
    b = problem.buffers[n]
    return -problem.crowd(n), b.lower - b.upper, -b.size * (b.upper - b.lower)


def _by_sections(problem: _Problem, n: int) -> tuple[int, ...]:
    b = problem.buffers[n]
    return problem.first[n] - problem.end[n], -b.size, -b.size * (b.upper - b.lower)


_ORDERS: tuple[_Order, ...] = (_by_crowd, _by_area, _by_sections)


@dataclass
class _Group:
    """Buffers that are packed together, and how far that is.

    Attributes:
        members: numbers, ascending.
        least: the lowest address that each may still get.
        since: address and rank of the placement before it.
        key: the outline it is packed on.
        outline: where each member would lie.
        rest: bytes to be placed in the sections from `first` on.
        candidates: members that may be next, the last one first.
        tried: the one that is placed.
        parts: groups to be packed after it; None if the next candidate is to be tried.
    """

    members: list[int]
    least: dict[int, int]
    since: _Place
    key: tuple[int, ...] = ()
    outline: list[int] = field(default_factory=list[int])
    first: int = 0
    rest: list[int] = field(default_factory=list[int])
    candidates: list[int] = field(default_factory=list[int])
    tried: int | None = None
    parts: list[_Group] | None = None


_Place = tuple[int, int]  # an address, and the rank of a buffer among equals


class _Search:
    """One depth-first search, for one order among equals."""

    def __init__(self, problem: _Problem, ranks: list[int], most: int) -> None:
        self.problem, self.ranks, self.most = problem, ranks, most
        self.steps = 0
        self.addresses = [0] * len(ranks)  # of a buffer that is not placed: where it would lie now
        self.rest = list(problem.totals)
        self.failed: dict[tuple[int, ...], _Place] = {}

    def run(self) -> bool:
        """Return whether every buffer has its address now."""
        every = range(len(self.ranks))
        root = _Group([], {}, (0, -1))
        root.parts = self._groups(list(every), dict.fromkeys(every, 0), root.since)
        stack = [root]
        while stack:
            group = stack[-1]
            if group.parts:
                stack.append(self._open(group.parts.pop()))
            elif group.parts is not None:
                stack.pop()
            elif not self._advance(group):
                stack.pop()
                if not stack:
                    return False
                stack[-1].parts = None
        return True

    def _groups(self, members: list[int], least: dict[int, int], since: _Place) -> list[_Group]:
        """Members by the stretches of time that they cover without a break; short groups come last."""
        groups, end = list[list[int]](), 0
        for n in members:
            if not groups or self.problem.first[n] >= end:
                groups.append([])
            groups[-1].append(n)
            end = max(end, self.problem.end[n])
        groups.sort(key=len, reverse=True)
        return [_Group(found, {n: least[n] for n in found}, since) for found in groups]

    def _open(self, group: _Group) -> _Group:
        """Note what a group is packed on, and who may be first."""
        members, addresses, sizes, since = group.members, self.addresses, self.problem.sizes, group.since
        group.outline = [addresses[n] for n in members]
        group.first = self.problem.first[members[0]]
        group.rest = self.rest[group.first : max(self.problem.end[n] for n in members)]
        group.key = (*members, *(at if at >= since[0] else -1 for at in group.outline))
        if (failed := self.failed.get(group.key)) is None or failed > since:
            under = min(addresses[n] + sizes[n] for n in members)
            places = sorted(((addresses[n], self.ranks[n], n) for n in members if addresses[n] < under), reverse=True)
            group.candidates = [n for at, rank, n in places if (at, rank) > since]
        return group

    def _advance(self, group: _Group) -> bool:
        """Place the next candidate of a group; return whether there is one that the rest may fit above."""
        while self.steps < self.most:
            if group.tried is not None:
                self._take_back(group)
            if not group.candidates or not self._fits(group):
                self.failed[group.key] = group.since
                return False
            self.steps += 1
            group.tried = group.candidates.pop()
            if (above := self._place(group, group.tried)) is not None:
                group.parts = above
                return True
        return False

    def _take_back(self, group: _Group) -> None:
        """Undo the placement of a group's candidate: another member has to raise it now."""
        assert group.tried is not None
        for n, address in zip(group.members, group.outline, strict=True):
            self.addresses[n] = address
        self.rest[group.first : group.first + len(group.rest)] = group.rest
        group.least[group.tried] = self._raised(group.tried, self.addresses[group.tried], group.least)

    def _place(self, group: _Group, chosen: int) -> list[_Group] | None:
        """Place a member; return the groups of the others, or None if they fit nowhere."""
        problem, addresses = self.problem, self.addresses
        at = addresses[chosen]
        top, since = at + problem.sizes[chosen], (at, self.ranks[chosen])
        for section in range(problem.first[chosen], problem.end[chosen]):
            self.rest[section] -= problem.sizes[chosen]
        for n in problem.neighbours[chosen]:
            if n in group.least and addresses[n] < top:
                addresses[n] = top
        others = [n for n in group.members if n != chosen]
        least = {n: max(group.least[n], addresses[n]) for n in others}
        for n in others:
            if (addresses[n], self.ranks[n]) < since:
                least[n] = max(least[n], self._raised(n, at, least))
        above = _Group(others, least, since, first=group.first, rest=group.rest)
        return self._groups(others, least, since) if self._fits(above) else None

    def _raised(self, number: int, floor: int, members: dict[int, int]) -> int:
        """Return the lowest end of a member, from `floor` on, that could lie under a buffer that is passed over."""
        sizes, addresses = self.problem.sizes, self.addresses
        ends = [max(addresses[n], floor) + sizes[n] for n in self.problem.neighbours[number] if n in members]
        return min(ends, default=self.problem.capacity)

    def _fits(self, group: _Group) -> bool:
        """Return whether no section's lowest address, plus what it has to take yet, exceeds the capacity."""
        first, capacity, sizes = group.first, self.problem.capacity, self.problem.sizes
        starts, ends, least = self.problem.first, self.problem.end, group.least
        lowest = [0] * len(group.rest)
        for n in sorted(group.members, key=least.__getitem__, reverse=True):
            if least[n] + sizes[n] > capacity:
                return False
            lowest[starts[n] - first : ends[n] - first] = [least[n]] * (ends[n] - starts[n])
        return max(map(add, lowest, self.rest[first : first + len(lowest)]), default=0) <= capacity
