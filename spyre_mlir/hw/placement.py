"""Placement of buffers in a scratchpad, on plain integers: lifetimes, first fit, in-place reuse of addresses."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

Pair = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Request:
    """One buffer to be placed.

    Attributes:
        number: tells it from the others.
        size: bytes, whole sticks.
        first: point in time of the first write.
        last: point in time of the last use; the buffer is alive from `first` to `last`, both included.
        saved: what having it pays; larger goes first.
        address: the place it must have, or None.
    """

    number: int
    size: int
    first: int
    last: int
    saved: int = 0
    address: int | None = None


def first_fit(requests: Sequence[Request], capacity: int, takeovers: Collection[Pair] = ()) -> dict[int, int]:
    """Return addresses by request number: the most profitable request first, at the lowest free address.

    Args:
        requests: buffers; those with an address keep it.
        capacity: bytes there are.
        takeovers: pairs (dying, born) that may share an address: the one is last read by the op that first
            writes the other, element by element. Such an address is preferred.

    Returns:
        An address for each request that has a place; the others fit nowhere.
    """
    placed = _Placed(requests)
    for request in requests:
        if request.address is not None:
            placed.put(request, request.address)
    waiting = [r for r in requests if r.address is None]
    for request in sorted(waiting, key=lambda r: (-r.saved, r.first, r.number)):
        address = _lowest(request, placed.rivals(request), capacity, takeovers)
        if address is not None:
            placed.put(request, address)
    return placed.addresses


class _Placed:
    """Requests that have an address, found by when they are alive: most of a long program are not at one time.

    Attributes:
        addresses: by number of the request.
    """

    def __init__(self, requests: Sequence[Request]) -> None:
        """Nothing is placed yet."""
        self.addresses: dict[int, int] = {}
        self._starts = sorted({r.first for r in requests})
        self._begun: list[list[tuple[Request, int]]] = [[] for _ in self._starts]
        self._alive: list[list[tuple[Request, int]]] = [[] for _ in self._starts]

    def put(self, request: Request, address: int) -> None:
        """Give a request its address."""
        self.addresses[request.number] = address
        low, high = bisect_left(self._starts, request.first), bisect_right(self._starts, request.last)
        self._begun[low].append((request, address))
        for alive in self._alive[low:high]:
            alive.append((request, address))

    def rivals(self, request: Request) -> list[tuple[Request, int]]:
        """Return those that are alive at some point in time at which a request is, with their addresses."""
        low, high = bisect_left(self._starts, request.first), bisect_right(self._starts, request.last)
        later = [placed for begun in self._begun[low + 1 : high] for placed in begun]
        return self._alive[low] + later


def _lowest(
    request: Request, rivals: Sequence[tuple[Request, int]], capacity: int, takeovers: Collection[Pair]
) -> int | None:
    partners = {address for r, address in rivals if may_share(r, request, takeovers)}
    ends = {0, *(address + r.size for r, address in rivals)}
    for address in [*sorted(partners), *sorted(ends)]:
        free = all(
            address + request.size <= other
            or other + r.size <= address
            or (address == other and may_share(r, request, takeovers))
            for r, other in rivals
        )
        if free and address + request.size <= capacity:
            return address
    return None


def may_share(one: Request, other: Request, takeovers: Collection[Pair]) -> bool:
    """Return whether a new request may take the address of one that ends."""
    dying, born = sorted((one, other), key=lambda r: (r.first, r.last))
    same = dying.size == born.size and dying.last == born.first
    return same and (dying.number, born.number) in takeovers


def collisions(
    requests: Sequence[Request], addresses: Mapping[int, int], takeovers: Collection[Pair] = ()
) -> list[Pair]:
    """Return pairs of requests that are alive together and share bytes without permission."""
    placed = sorted((r for r in requests if r.number in addresses), key=lambda r: (r.first, r.number))
    found: list[Pair] = []
    alive: list[Request] = []
    for request in placed:
        alive = [r for r in alive if r.last >= request.first]
        low = addresses[request.number]
        for other in alive:
            start = addresses[other.number]
            apart = start >= low + request.size or low >= start + other.size
            if not apart and not (start == low and may_share(other, request, takeovers)):
                found.append((other.number, request.number))
        alive.append(request)
    return found


def peak(requests: Sequence[Request], addresses: Mapping[int, int]) -> int:
    """Return the bytes from the start of the scratchpad to the end of the last byte ever used."""
    return max((addresses[r.number] + r.size for r in requests if r.number in addresses), default=0)
