"""Division of a sequence of kernels over the cores, chosen together with what stays in the scratchpads.

A buffer can stay in the scratchpads if all kernels that use it give every core the same slice of it. So a division
that is quickest for one kernel may cost its neighbours a trip through device memory. The search goes through the
kernels in their order and keeps, for every combination of buffers that are held and their slices, the quickest
divisions so far.

Plain data: the caller says what divisions a kernel has, and what work each of them is.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, product
from math import inf

from spyre_mlir.hw.cost import CostKind, Work, total_us
from spyre_mlir.hw.cost_parameters import CALIBRATED, CostParameters
from spyre_mlir.hw.formats import DL16
from spyre_mlir.hw.spec import SPYRE, SpyreSpec

ELEMENT_BYTES = DL16.bits // 8
OUTSIDE = -1  # the number of a buffer that is in device memory whatever the plan
ROUNDING = 1e-12
# Combinations that the search keeps from one kernel to the next. Where a buffer may have many slices at equal times,
# few combinations would leave out those that later kernels need, so it keeps more where the kernels are few.
WIDTH, MOST_WIDTH, COMBINATIONS = 24, 64, 2048


@dataclass(frozen=True, eq=False)
class DividedKernel:
    """One division of a kernel.

    Attributes:
        splits: slices of every loop.
        work: what the kernel then does, all operands in device memory.
        views: per operand, the slices that cores see of it; None where these are no slices that a scratchpad can hold.
        sizes: per operand, bytes of one core's slice.
        in_place: inputs whose place the result may take.
    """

    splits: Mapping[str, int]
    work: Work
    views: tuple[Hashable | None, ...]
    sizes: tuple[int, ...]
    in_place: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Kernel:
    """A kernel of the sequence.

    Attributes:
        operands: numbers of its buffers, the result last.
        candidates: the divisions to choose from.
        copied: inputs in device memory that are no buffers of the sequence, and may be copied to the scratchpads.
        required: buffers among its operands that have to be in the scratchpads.
        wished: those of them that may be in device memory if no plan has them in the scratchpads.
    """

    operands: tuple[int, ...]
    candidates: tuple[DividedKernel, ...]
    copied: frozenset[int] = frozenset()
    required: frozenset[int] = frozenset()
    wished: frozenset[int] = frozenset()


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


class Prices:
    """Predicted times of kernels, each computed once.

    Attributes:
        parameters: the numbers of a profile.
        spec: the machine.
    """

    def __init__(self, parameters: CostParameters = CALIBRATED, spec: SpyreSpec = SPYRE) -> None:
        """Know no time yet."""
        self.parameters, self.spec = parameters, spec
        self._us: dict[tuple[DividedKernel, frozenset[int]], float] = {}
        self._floors: dict[tuple[DividedKernel, frozenset[int]], float] = {}
        self._copies: dict[tuple[DividedKernel, int], float] = {}

    def us(self, candidate: DividedKernel, local: frozenset[int]) -> float:
        """Return the time of a kernel that is divided so, with some operands in the scratchpads."""
        key = candidate, local
        if (known := self._us.get(key)) is None:
            known = self._us[key] = total_us(with_local(candidate.work, local), self.parameters)
        return known

    def floor_us(self, candidate: DividedKernel, local: frozenset[int]) -> float:
        """Return a time that none is below in which some of these operands are in the scratchpads, or all."""
        key = candidate, local
        if (known := self._floors.get(key)) is None:
            known = total_us(with_local(candidate.work, local), self.parameters, scratchpad=False)
            self._floors[key] = known
        return known

    def copy_us(self, candidate: DividedKernel, operand: int) -> float:
        """Return the time to copy an operand to the scratchpads in the slices that a kernel sees."""
        key = candidate, operand
        if (known := self._copies.get(key)) is None:
            known = self._copies[key] = total_us(_copy(candidate, operand), self.parameters)
        return known


def _copy(candidate: DividedKernel, operand: int) -> Work:
    source = replace(candidate.work.operands[operand], readers=1, small=False, local=False)
    return Work(
        kind=CostKind.POINTWISE,
        cores=candidate.work.cores,
        elements=source.needed // ELEMENT_BYTES,
        operands=(source, replace(source, written=True, local=True)),
    )


def with_local(work: Work, local: frozenset[int]) -> Work:
    """Return the work with these operands in the scratchpads, and no others."""
    operands = tuple(
        [o if o.local == (n in local) else replace(o, local=not o.local) for n, o in enumerate(work.operands)]
    )
    return replace(work, operands=operands)


def divide_together(kernels: Sequence[Kernel], prices: Prices | None = None, width: int | None = None) -> Division:
    """Return the quickest division that the search finds; of equally quick ones the first.

    Raises:
        ValueError: a kernel has no candidate.
    """
    found = divide_within(kernels, inf, prices, width)
    if found is None:
        raise ValueError("a division takes for ever")
    return found


def divide_within(
    kernels: Sequence[Kernel], most_us: float, prices: Prices | None = None, width: int | None = None
) -> Division | None:
    """Return the quickest division that the search finds; None if none takes at most `most_us`.

    Args:
        kernels: in their order.
        most_us: that it may take.
        prices: times that are known, and the parameters of the others.
        width: combinations that the search keeps behind each kernel; None for as many as the kernels allow.

    Raises:
        ValueError: a kernel has no candidate.
    """
    width = max(WIDTH, min(MOST_WIDTH, COMBINATIONS // max(1, len(kernels)))) if width is None else width
    search = _Search(kernels, most_us, Prices() if prices is None else prices)
    states = [_State()]
    for number in range(len(kernels)):
        best: dict[Hashable, _State] = {}
        for state in states:
            search.step(number, state, best)
        # The state that holds the least always has a way on.
        order = sorted(best.values(), key=lambda s: s.us)
        states = [*order[:width], *sorted(order[width:], key=lambda s: len(s.held))[:1]]
    if not states:
        return None
    path = states[0].path()
    times = [state.last_us for state in path]
    local = frozenset(b for state in path for b in state.added)
    held = tuple(state.local for state in path)
    return Division(states[0].us, tuple(s.choice for s in path), local, tuple(times), held)


@dataclass(frozen=True)
class _Addition:
    """Buffers that begin to be held at a kernel.

    Attributes:
        held: by buffer, its slices and their bytes.
        bytes: of one core, in all.
        copy_us: time to copy those of them that are copies.
    """

    held: Held
    bytes: int
    copy_us: float


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
        self.possible = _possible(kernels)
        # Behind each kernel, the most time that leaves enough for those that follow.
        self.most_us = [inf] * len(kernels) if most_us == inf else _latest(kernels, most_us, prices)

    def step(self, number: int, state: _State, best: dict[Hashable, _State]) -> None:
        """Put states behind kernel `number` that follow from one before it where they are the best that hold so."""
        kernel, held, most_us = self.kernels[number], state.held, self.most_us[number]
        operands = list(enumerate(kernel.operands))
        shared = [(n, b) for n, b in operands if b in held and n not in kernel.copied]
        ending = {b for b in kernel.operands if self.last[b] == number}
        used = sum([size for _, size in held.values()])
        for choice, candidate in enumerate(kernel.candidates):
            views = candidate.views
            if shared and any(held[b][0] != views[n] for n, b in shared):
                continue
            for added in self._additions(number, candidate, held):
                now = {**held, **added.held} if added.held else held
                local = frozenset([n for n, b in operands if b in now and now[b][0] == views[n]])
                last_us = self.prices.us(candidate, local) + added.copy_us
                owed = self._owed(kernel, candidate, local, state, added)
                us = state.us + last_us + (sum(owed.values()) - sum(state.owed.values()))
                least_us = us - sum(owed.values())
                if least_us > most_us or not self._fits(kernel, candidate, now, used + added.bytes, ending):
                    continue
                kept = {b: slices for b, slices in now.items() if b not in ending}
                owed = {b: gain for b, gain in owed.items() if b in kept}
                key = frozenset(kept.items()), frozenset(owed.items())
                if (other := best.get(key)) is None or us < other.us:
                    best[key] = _State(us, last_us, kept, owed, state, choice, tuple(added.held), local)

    def _owed(
        self, kernel: Kernel, candidate: DividedKernel, local: frozenset[int], state: _State, added: _Addition
    ) -> Mapping[int, float]:
        """What first readers of copies gain, behind a kernel: second readers settle it, copies made here add to it."""
        made = [n for n in kernel.copied if n in local and kernel.operands[n] in added.held]
        if not made and not state.owed:
            return _NOTHING_OWED
        read = {kernel.operands[n] for n in local}
        owed = {b: gain for b, gain in state.owed.items() if b not in read}
        rest = local
        for n in sorted(made):
            us, rest = self.prices.us(candidate, rest), rest - {n}
            # A copy of which nothing is gained yet is no better than none.
            gain = self.prices.us(candidate, rest) - us - self.prices.copy_us(candidate, n)
            owed[kernel.operands[n]] = max(0.0, gain) + ROUNDING * us
        return owed

    def _additions(self, number: int, candidate: DividedKernel, held: Held) -> list[_Addition]:
        """Ways to hold the buffers that come up at this kernel, and inputs that later kernels read too."""
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
        copies = {kernel.operands[n]: self.prices.copy_us(candidate, n) for n in kernel.copied}
        options = [[True] if b in required else [True, False] if b not in clashing else [False] for b in new]
        chosen = ({b: new[b] for b, kept in zip(new, way, strict=True) if kept} for way in product(*options))
        return [
            _Addition(way, sum([size for _, size in way.values()]), sum([copies.get(b, 0.0) for b in way]))
            for way in chosen
        ]

    def _comes_up(self, number: int, place: int, held: Held) -> bool:
        """Return whether a buffer can begin to be held at a kernel."""
        buffer = self.kernels[number].operands[place]
        if place in self.kernels[number].copied:
            return buffer not in held and self.last[buffer] > number
        return self.first[buffer] == number

    def _fits(self, kernel: Kernel, candidate: DividedKernel, held: Held, used: int, ending: set[int]) -> bool:
        """Return whether there is room for what is held at a kernel, whose result may take over an input's bytes."""
        room = self.prices.spec.lx_usable_bytes
        result = kernel.operands[-1]
        if used <= room or result not in held:
            return used <= room
        size = held[result][1]
        inputs = {kernel.operands[n] for n in candidate.in_place} - {result}
        return used - size <= room and any(b in held and b in ending and held[b][1] == size for b in inputs)


_NOTHING = _Addition({}, 0, 0.0)
_NOTHING_OWED: Mapping[int, float] = {}


def _latest(kernels: Sequence[Kernel], most_us: float, prices: Prices) -> list[float]:
    """Behind each kernel, the most time that leaves enough for those that follow."""
    least = [
        min(prices.floor_us(c, frozenset([n for n, b in enumerate(k.operands) if b != OUTSIDE])) for c in k.candidates)
        for k in kernels
    ]
    behind = list(accumulate(reversed(least[1:]), initial=0.0))
    # Sums of the same times in another order may differ in the last digit.
    return [(most_us - us) * (1 + ROUNDING) for us in reversed(behind)]


def _possible(kernels: Sequence[Kernel]) -> Mapping[int, frozenset[Hashable]]:
    """Slices of each buffer that every kernel that uses it can see."""
    found: dict[int, frozenset[Hashable]] = {}
    for kernel in kernels:
        for place, buffer in enumerate(kernel.operands):
            seen = frozenset(c.views[place] for c in kernel.candidates if c.views[place] is not None)
            # A kernel that sees a copy differently reads the original.
            found[buffer] = (
                found.get(buffer, seen) & seen if place not in kernel.copied else seen | found.get(buffer, seen)
            )
    return found


__all__ = ["OUTSIDE", "DividedKernel", "Division", "Kernel", "Prices", "divide_together", "divide_within", "with_local"]
