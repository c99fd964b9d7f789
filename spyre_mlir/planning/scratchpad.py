"""Placement of buffers in a scratchpad: by first fit, and by choice and exact packing where first fit leaves some out.

Which buffers have a place is chosen by time: a sweep over their starts keeps, for each set that may live at a time, the
choice that saves most so far. Only bytes are counted there, so what it saves is a bound for every placement. The choice
is then packed exactly; if that needs too many steps, a choice for fewer bytes is. A buffer that takes over another
one's address is packed with it as one.

All work is counted, none is timed: equal requests have equal addresses on every machine.

Decision: docs/decisions/0127-own-search-packs-scratchpads.md
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from spyre_mlir.hw.placement import Pair, Request, collisions, first_fit
from spyre_mlir.planning.packing import Buffer, pack

PACKING_STEPS = 2_000  # for each choice; a packing that fits easily takes one per buffer
KEPT_STATES = 1_000
# Bytes that are kept free, in 1/64 of the capacity, until a choice can be packed.
FREE_SHARES = (0, 1, 2, 4, 8, 16)


def place(
    requests: Sequence[Request], capacity: int, takeovers: Collection[Pair] = (), steps: int = PACKING_STEPS
) -> dict[int, int]:
    """Return addresses by request number, as `first_fit` does; where it leaves requests out, those that save more.

    Args:
        requests: buffers; if one has an address already, first fit has the last word.
        capacity: bytes there are.
        takeovers: pairs (dying, born) that may share an address.
        steps: placements that a packing may try.
    """
    quick = first_fit(requests, capacity, takeovers)
    waiting = [r for r in requests if r.number not in quick and r.size <= capacity]
    if not waiting or any(r.address is not None for r in requests):
        return quick
    placed = sum(r.saved for r in requests if r.number in quick)
    for share in FREE_SHARES:
        choice = choose(requests, capacity - capacity * share // 64, takeovers)
        if choice.saved <= placed:
            break
        if (addresses := _packed(requests, choice, capacity, takeovers, steps)) is not None:
            return addresses
    return quick


@dataclass(frozen=True)
class Choice:
    """Requests that are to have a place.

    Attributes:
        taken: number of the request whose address each chosen one takes over, or None, by number.
        saved: what having them pays.
        exact: whether no other choice of as many bytes saves more; False if sets were given up.
    """

    taken: Mapping[int, int | None]
    saved: int
    exact: bool


@dataclass(frozen=True)
class _State:
    """The best choice so far among those with the same requests alive."""

    saved: int
    load: int
    alive: tuple[Request, ...]
    before: _State | None = None
    chosen: tuple[int, int | None] | None = None

    def without(self, time: int) -> _State:
        """Return the state when those that ended before a time are gone."""
        alive = tuple(r for r in self.alive if r.last >= time)
        load = sum(r.size for r in alive)
        return self if len(alive) == len(self.alive) else _State(self.saved, load, alive, self.before, self.chosen)

    def plus(self, request: Request, dying: Request | None) -> _State:
        """Return the state with a request, on the bytes of a dying one if there is one."""
        rest = tuple(r for r in self.alive if r is not dying)
        load = self.load + request.size - (0 if dying is None else dying.size)
        taken = None if dying is None else dying.number
        return _State(self.saved + request.saved, load, (*rest, request), self, (request.number, taken))


def choose(
    requests: Sequence[Request], capacity: int, takeovers: Collection[Pair] = (), most: int = KEPT_STATES
) -> Choice:
    """Return the requests that save most with no more bytes alive than the capacity; of equals, more requests.

    Args:
        requests: buffers without addresses.
        capacity: bytes there are.
        takeovers: pairs (dying, born) that may share an address.
        most: sets of living requests that are kept at a time.
    """
    donors = defaultdict[int, set[int]](set)
    for dying, born in takeovers:
        donors[born].add(dying)
    states, exact = {(): _State(0, 0, ())}, True
    for request in sorted(requests, key=lambda r: (r.first, r.number)):
        found = dict[tuple[int, ...], _State]()
        for state in states.values():
            now = state.without(request.first)
            _keep(found, now)
            grown = now.plus(request, _donor(request, now, donors[request.number]))
            if grown.load <= capacity:
                _keep(found, grown)
        if len(found) > most:
            exact = False
            best = sorted(found.items(), key=lambda item: (-item[1].saved, item[1].load, item[0]))
            found = dict(best[:most])
        states = found
    best = max(states.values(), key=lambda s: s.saved)
    taken, state = dict[int, int | None](), best
    while state.before is not None:
        assert state.chosen is not None
        number, donor = state.chosen
        taken[number] = donor
        state = state.before
    return Choice(taken, best.saved, exact)


def _keep(states: dict[tuple[int, ...], _State], state: _State) -> None:
    key = tuple(sorted(r.number for r in state.alive))
    if key not in states or states[key].saved <= state.saved:
        states[key] = state


def _donor(request: Request, state: _State, donors: Collection[int]) -> Request | None:
    """The living request whose address a new one may take over."""
    able = (
        r for r in state.alive if r.number in donors and r.first < r.last == request.first and r.size == request.size
    )
    return min(able, key=lambda r: r.number, default=None)


def _packed(
    requests: Sequence[Request], choice: Choice, capacity: int, takeovers: Collection[Pair], steps: int
) -> dict[int, int] | None:
    """Addresses of a choice, or None if no packing of it was found."""
    chains = dict[int, list[Request]]()
    for request in sorted((r for r in requests if r.number in choice.taken), key=lambda r: (r.first, r.number)):
        donor = choice.taken[request.number]
        chain = [] if donor is None else chains[donor]
        chain.append(request)
        chains[request.number] = chain
    whole = list({id(chain): chain for chain in chains.values()}.values())
    found = pack([Buffer(c[0].first, c[-1].last + 1, c[0].size) for c in whole], capacity, steps).addresses
    if found is None:
        return None
    addresses = {r.number: at for chain, at in zip(whole, found, strict=True) for r in chain}
    return None if collisions(requests, addresses, takeovers) else addresses
