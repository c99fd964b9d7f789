"""Division of a sequence of kernels over the cores, chosen together with what stays in the scratchpads.

A buffer can stay in the scratchpads if all kernels that use it give every core the same slice of it. So a division
that is quickest for one kernel may cost its neighbours a trip through device memory. The search goes through the
kernels in their order and keeps, for every combination of buffers that are held and their slices, the quickest
divisions so far.

Plain data: the caller says what divisions a kernel has, and what work each of them is.

Decision: docs/decisions/0165-what-is-known-is-not-asked-again.md
Decision: docs/decisions/0193-plans-share-what-they-know.md
Decision: docs/decisions/0210-loops-are-priced-when-they-promise-most.md
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import product
from math import inf

from spyre_mlir.planning.divided_kernels import OUTSIDE, DividedKernel, Kernel, Prices, with_local
from spyre_mlir.planning.later_losses import Reader, lost_later
from spyre_mlir.planning.least_times import ROUNDING, latest_us, possible_slices

# Combinations that the search keeps from one kernel to the next. Where a buffer may have many slices at equal times,
# few combinations would leave out those that later kernels need, so it keeps more where the kernels are few.
WIDTH, MOST_WIDTH, COMBINATIONS = 24, 64, 2048
KEPT = 64  # searches that are remembered


@dataclass(frozen=True)
class Division:
    """A division of every kernel of a sequence.

    Attributes:
        us: predicted time.
        chosen: the candidate of each kernel.
        local: buffers that stay in the scratchpads, copies among them.
        times: predicted time of each kernel, copies that are made for it included, microseconds.
        held: operands of each kernel that are in the scratchpads, by their places.
    """

    us: float
    chosen: tuple[int, ...]
    local: frozenset[int]
    times: tuple[float, ...]
    held: tuple[frozenset[int], ...]


Held = Mapping[int, tuple[Hashable, int]]  # by buffer: the slices, and the bytes of one of them


@dataclass(slots=True)
class _State:
    """Choices for the first kernels: their time, what is held behind the last of them, and how they came about.

    `owed` has the copies that one kernel has read so far, and what that kernel gains from each. It is part of the time
    until a second one reads the copy: a copy for one reader would only take the reader's writes apart from its reads,
    and `place-lx` makes none.
    """

    us: float = 0.0
    last_us: float = 0.0  # of the last kernel, whatever is owed
    held: Held = field(default_factory=dict[int, tuple[Hashable, int]])
    owed: Mapping[int, float] = field(default_factory=dict[int, float])
    before: _State | None = None
    choice: int = 0
    added: tuple[int, ...] = ()
    local: frozenset[int] = frozenset()  # operands of the last kernel in the scratchpads

    def path(self) -> list[_State]:
        """The states from the first kernel to this."""
        states, state = list[_State](), self
        while state.before is not None:
            states.append(state)
            state = state.before
        return states[::-1]


def divide_within(
    kernels: Sequence[Kernel], most_us: float, prices: Prices | None = None, width: int | None = None
) -> Division | None:
    """Return the quickest division that the search finds, of equals the first; None if none takes at most `most_us`.

    Args:
        kernels: in their order.
        most_us: that it may take.
        prices: times that are known, and the parameters of the others.
        width: combinations that the search keeps behind each kernel; None for as many as the kernels allow.

    Raises:
        ValueError: a kernel has no candidate.
    """
    width = max(WIDTH, min(MOST_WIDTH, COMBINATIONS // max(1, len(kernels)))) if width is None else width
    return _divided(tuple(kernels), most_us, Prices() if prices is None else prices, width)


@lru_cache(maxsize=KEPT)
def _divided(kernels: tuple[Kernel, ...], most_us: float, prices: Prices, width: int) -> Division | None:
    """The same; plans of one program ask for the same kernels again and again."""
    search = _Search(kernels, most_us, prices)
    states = [_State()] if search.begin_us >= 0 else []
    for number in range(len(kernels)):
        best: dict[Hashable, _State] = {}
        for state in states:
            search.step(number, state, best)
        # The state that holds the least always has a way on.
        order = sorted(best.values(), key=lambda s: s.us + search.later_us(number, s.held))
        states = [*order[:width], *sorted(order[width:], key=lambda s: len(s.held))[:1]]
    if not states:
        return None
    path = states[0].path()
    times = [state.last_us for state in path]
    local = frozenset(b for state in path for b in state.added)
    held = tuple(state.local for state in path)
    return Division(states[0].us, tuple(s.choice for s in path), local, tuple(times), held)


@dataclass(slots=True)
class _Addition:
    """Buffers that begin to be held at a kernel.

    Attributes:
        held: by buffer, its slices and their bytes.
        kept: those of them that later kernels use.
        places: operands of the kernel that are among them.
        copies: those of these operands that are copies made here.
        bytes: of one core, in all.
        copy_us: time to make the copies.
    """

    held: Held
    kept: Held
    places: tuple[int, ...]
    copies: tuple[int, ...]
    bytes: int
    copy_us: float


@dataclass(slots=True)
class _Way:
    """One candidate of a kernel, with buffers that begin to be held there.

    Attributes:
        choice: its number.
        candidate: itself.
        added: the buffers.
        local: operands in the scratchpads.
        us: time of the kernel and of the copies.
    """

    choice: int
    candidate: DividedKernel
    added: _Addition
    local: frozenset[int]
    us: float


class _Search:
    """The choices at each kernel of a sequence that may lead to a division within a time."""

    def __init__(self, kernels: Sequence[Kernel], most_us: float, prices: Prices) -> None:
        self.kernels, self.prices = kernels, prices
        self.first: dict[int, int] = {}
        self.last: dict[int, int] = {}
        for number, kernel in enumerate(kernels):
            if not kernel.candidates:
                raise ValueError(f"kernel {number} has no division")
            for buffer in kernel.operands:
                self.first.setdefault(buffer, number)
                self.last[buffer] = number
        self._ending = [{b for b in k.operands if self.last[b] == number} for number, k in enumerate(kernels)]
        self._room = _room(kernels, self.first, prices.spec.lx_usable_bytes)
        self._known_ways: list[dict[Hashable, list[_Way]]] = [{} for _ in kernels]
        self._known_choices: dict[Hashable, dict[Hashable, list[int]]] = {}
        self._known_additions: dict[Hashable, list[_Addition]] = {}
        self._lost: list[dict[tuple[int, tuple[Hashable, int]], float]] = [{} for _ in kernels]
        self.possible = possible_slices(kernels, prices.spec.lx_usable_bytes)
        latest = [inf] * (len(kernels) + 1) if most_us == inf else latest_us(kernels, most_us, self.possible, prices)
        # Before the first kernel, and behind each, the most time that leaves enough for those that follow.
        self.begin_us, self.most_us = latest[0], latest[1:]

    @cached_property
    def readers(self) -> Mapping[int, list[Reader]]:
        """By buffer the kernels that use it, with what each loses by the buffer's slices."""
        return lost_later(self.kernels, self.prices)

    def later_us(self, number: int, held: Held) -> float:
        """Return about how much a later kernel loses by a division that suits what is held behind kernel `number`."""
        known, most = self._lost[number], 0.0
        for slices in held.items():
            if (lost := known.get(slices)) is None:
                buffer, (view, _) = slices
                slower = [slower for at, slower in self.readers.get(buffer, ()) if at > number]
                lost = known[slices] = max([of.get(view, 0.0) for of in slower], default=0.0)
            if lost > most:
                most = lost
        return most

    def step(self, number: int, state: _State, best: dict[Hashable, _State]) -> None:
        """Put states behind kernel `number` that follow from one before it where they are the best that hold so."""
        kernel, held, owed_before, most_us = self.kernels[number], state.held, state.owed, self.most_us[number]
        ending, room = self._ending[number], self._room[number]
        used, owed_us = sum([size for _, size in held.values()]), sum(owed_before.values())
        stays = {b: slices for b, slices in held.items() if b not in ending}
        same_held = frozenset(stays.items())
        for way in self._ways(number, held):
            added, us, owed = way.added, state.us + way.us, _NOTHING_OWED
            if owed_before or added.copies:
                owed = self._owed(kernel, way, state)
                us += sum(owed.values()) - owed_us
            if (us - sum(owed.values()) if owed else us) > most_us:
                continue
            if used + added.bytes > room and not self._takes_over(
                kernel, way, {**held, **added.held}, used - room, ending
            ):
                continue
            kept, now_held = stays, same_held
            if added.kept:
                kept = {**stays, **added.kept}
                now_held = same_held.union(added.kept.items())
            owed = {b: gain for b, gain in owed.items() if b in kept} if owed else owed
            key = now_held, frozenset(owed.items()) if owed else _NONE_OWED
            if (other := best.get(key)) is None or us < other.us:
                best[key] = _State(us, way.us, kept, owed, state, way.choice, tuple(added.held), way.local)

    def _ways(self, number: int, held: Held) -> list[_Way]:
        """The ways on at a kernel, which follow from the slices in which its own operands are held."""
        kernel = self.kernels[number]
        seen = tuple([None if (slices := held.get(b)) is None else slices[0] for b in kernel.operands])
        known = self._known_ways[number]
        if seen not in known:
            known[seen] = self._quickest(number, self._found_ways(number, held))
        return known[seen]

    def _quickest(self, number: int, ways: Iterable[_Way]) -> list[_Way]:
        """The ways, of those that begin to hold nothing the quickest alone: later kernels see them alike."""
        found, kernel = list(ways), self.kernels[number]
        result = kernel.operands[-1]
        # What first readers of copies gain depends on the way, and so does the room for a result that is held before.
        if kernel.copied or (result != OUTSIDE and self.first[result] != number):
            return found
        bare = [way for way in found if not way.added.held]
        if len(bare) < 2:
            return found
        best = min(bare, key=lambda way: way.us)
        return [way for way in found if way.added.held or way is best]

    def _found_ways(self, number: int, held: Held) -> Iterator[_Way]:
        kernel = self.kernels[number]
        seen = [(n, held[b][0]) for n, b in enumerate(kernel.operands) if b in held]
        shared = [(n, view) for n, view in seen if n not in kernel.copied]
        before, locals_ = tuple([n for n, _ in shared]), dict[Hashable, frozenset[int]]()
        for choice in self._choices(number, before).get(tuple([view for _, view in shared]), ()):
            candidate = kernel.candidates[choice]
            if kernel.copied:
                before = tuple([n for n, view in seen if view == candidate.views[n]])
            for added in self._additions(number, choice, held):
                # What comes up here is held in the slices that the kernel sees.
                if (local := locals_.get((before, added.places))) is None:
                    local = locals_[before, added.places] = frozenset(before + added.places)
                yield _Way(choice, candidate, added, local, self.prices.us(candidate, local) + added.copy_us)

    def _owed(self, kernel: Kernel, way: _Way, state: _State) -> Mapping[int, float]:
        """What first readers of copies gain, behind a kernel: second readers settle it, copies made here add to it."""
        read = {kernel.operands[n] for n in way.local}
        owed = {b: gain for b, gain in state.owed.items() if b not in read}
        rest = way.local
        for n in way.added.copies:
            us, rest = self.prices.us(way.candidate, rest), rest - {n}
            # A copy of which nothing is gained yet is no better than none.
            gain = self.prices.us(way.candidate, rest) - us - self.prices.copy_us(way.candidate, n)
            owed[kernel.operands[n]] = max(0.0, gain) + ROUNDING * us
        return owed

    def _choices(self, number: int, places: tuple[int, ...]) -> Mapping[Hashable, Sequence[int]]:
        """The candidates of a kernel, by the slices that they see of some operands."""
        key = number, places
        if (known := self._known_choices.get(key)) is None:
            known = self._known_choices[key] = dict[Hashable, list[int]]()
            for choice, candidate in enumerate(self.kernels[number].candidates):
                known.setdefault(tuple([candidate.views[n] for n in places]), []).append(choice)
        return known

    def _additions(self, number: int, choice: int, held: Held) -> list[_Addition]:
        """Ways to hold the buffers that come up at this kernel, and inputs that later kernels read too."""
        kernel = self.kernels[number]
        copied = tuple([kernel.operands[place] in held for place in kernel.copied])
        key = number, choice, copied
        if (known := self._known_additions.get(key)) is None:
            known = self._known_additions[key] = self._found_additions(number, kernel.candidates[choice], held)
        return known

    def _found_additions(self, number: int, candidate: DividedKernel, held: Held) -> list[_Addition]:
        new: dict[int, tuple[Hashable, int]] = {}
        clashing = set[int]()
        kernel = self.kernels[number]
        for place, buffer in enumerate(kernel.operands):
            if buffer == OUTSIDE or not self._comes_up(number, place, held):
                continue
            view, size = candidate.views[place], candidate.sizes[place]
            if view not in self.possible[buffer] or new.get(buffer, (view, size))[0] != view:
                clashing.add(buffer)
            else:
                new[buffer] = view, size
        required = self.kernels[number].required
        if clashing & required:
            return []
        if not new:
            return [_NOTHING]
        options = [[True] if b in required else [True, False] if b not in clashing else [False] for b in new]
        chosen = ({b: new[b] for b, kept in zip(new, way, strict=True) if kept} for way in product(*options))
        return [self._addition(number, candidate, way) for way in chosen]

    def _addition(self, number: int, candidate: DividedKernel, held: Held) -> _Addition:
        kernel, ending = self.kernels[number], self._ending[number]
        places = tuple([n for n, b in enumerate(kernel.operands) if b in held])
        copies = tuple([n for n in places if n in kernel.copied])
        kept = {b: slices for b, slices in held.items() if b not in ending}
        copy_us = {kernel.operands[n]: self.prices.copy_us(candidate, n) for n in copies}
        return _Addition(held, kept, places, copies, sum([size for _, size in held.values()]), sum(copy_us.values()))

    def _comes_up(self, number: int, place: int, held: Held) -> bool:
        """Return whether a buffer can begin to be held at a kernel."""
        buffer = self.kernels[number].operands[place]
        if place in self.kernels[number].copied:
            return buffer not in held and self.last[buffer] > number
        return self.first[buffer] == number

    def _takes_over(self, kernel: Kernel, way: _Way, held: Held, beyond: int, ending: Container[int]) -> bool:
        """Return whether there is room for what is held at a kernel if its result takes over an input's bytes.

        Before the kernel, what is held is so many bytes beyond the room.
        """
        result = kernel.operands[-1]
        if result not in held:
            return False
        size = held[result][1]
        inputs = {kernel.operands[n] for n in way.candidate.in_place} - {result}
        fits = beyond + way.added.bytes - size <= 0
        return fits and any(b in held and b in ending and held[b][1] == size for b in inputs)


def _room(kernels: Sequence[Kernel], first: Mapping[int, int], usable: int) -> list[int]:
    """Bytes of a scratchpad at each kernel, less the least that is held for a later one throughout."""
    room = [usable] * len(kernels)
    for number, kernel in enumerate(kernels):
        for buffer in kernel.throughout:
            if first[buffer] == number:
                place = kernel.operands.index(buffer)
                least = min(candidate.sizes[place] for candidate in kernel.candidates)
                room[:number] = [bytes_ - least for bytes_ in room[:number]]
    return room


_NOTHING = _Addition({}, {}, (), (), 0, 0.0)
_NOTHING_OWED: Mapping[int, float] = {}
_NONE_OWED = frozenset[tuple[int, float]]()


__all__ = [
    "OUTSIDE",
    "WIDTH",
    "DividedKernel",
    "Division",
    "Kernel",
    "Prices",
    "divide_within",
    "with_local",
]
