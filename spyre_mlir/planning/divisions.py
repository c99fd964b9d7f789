"""Division of a sequence of kernels over the cores, chosen together with what stays in the scratchpads.

A buffer can stay in the scratchpads if all kernels that use it give every core the same slice of it. So a division
that is quickest for one kernel may cost its neighbours a trip through device memory. The search goes through the
kernels in their order and keeps, for every combination of buffers that are held and their slices, the quickest
divisions so far.

Plain data: the caller says what divisions a kernel has, and what work each of them is.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import product

from spyre_mlir.hw.cost import CostKind, Work, cost
from spyre_mlir.hw.cost_parameters import CALIBRATED, CostParameters
from spyre_mlir.hw.formats import DL16
from spyre_mlir.hw.spec import SPYRE, SpyreSpec

ELEMENT_BYTES = DL16.bits // 8
OUTSIDE = -1  # the number of a buffer that is in device memory whatever the plan
WIDTH = 24  # combinations that the search keeps from one kernel to the next


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
    """

    operands: tuple[int, ...]
    candidates: tuple[DividedKernel, ...]
    copied: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Division:
    """A division of every kernel of a sequence.

    Attributes:
        us: predicted time.
        chosen: the candidate of each kernel.
        local: buffers that stay in the scratchpads, copies among them.
        times: predicted time of each kernel, microseconds.
    """

    us: float
    chosen: tuple[int, ...]
    local: frozenset[int]
    times: tuple[float, ...]


Held = Mapping[int, tuple[Hashable, int]]  # by buffer: the slices, and the bytes of one of them


@dataclass(frozen=True)
class _State:
    """Choices for the first kernels: their time, what is held behind the last of them, and how they came about."""

    us: float = 0.0
    held: Held = field(default_factory=dict[int, tuple[Hashable, int]])
    before: _State | None = None
    choice: int = 0
    added: tuple[int, ...] = ()

    def path(self) -> list[_State]:
        """The states from the first kernel to this."""
        states, state = list[_State](), self
        while state.before is not None:
            states.append(state)
            state = state.before
        return states[::-1]


@lru_cache(maxsize=1 << 14)
def copy_us(candidate: DividedKernel, operand: int, p: CostParameters, spec: SpyreSpec) -> float:
    """Return the predicted time to copy an operand to the scratchpads in the slices that a kernel sees."""
    source = replace(candidate.work.operands[operand], readers=1, small=False, local=False)
    work = Work(
        kind=CostKind.POINTWISE,
        cores=candidate.work.cores,
        elements=source.needed // ELEMENT_BYTES,
        operands=(source, replace(source, written=True, local=True)),
    )
    return cost(work, p, spec).total


@lru_cache(maxsize=1 << 16)
def price_us(candidate: DividedKernel, local: frozenset[int], p: CostParameters, spec: SpyreSpec) -> float:
    """Return the predicted time of a kernel that is divided so, with some operands in the scratchpads."""
    operands = tuple(replace(o, local=n in local) for n, o in enumerate(candidate.work.operands))
    return cost(replace(candidate.work, operands=operands), p, spec).total


def divide_together(
    kernels: Sequence[Kernel], p: CostParameters = CALIBRATED, spec: SpyreSpec = SPYRE, width: int = WIDTH
) -> Division:
    """Return the quickest division that the search finds; of equally quick ones the first.

    Raises:
        ValueError: a kernel has no candidate.
    """
    search = _Search(kernels, p, spec)
    states = [_State()]
    for number, kernel in enumerate(kernels):
        if not kernel.candidates:
            raise ValueError(f"kernel {number} has no division")
        best: dict[Hashable, _State] = {}
        for state in states:
            for made in search.steps(number, state):
                key = frozenset(made.held.items())
                if key not in best or made.us < best[key].us:
                    best[key] = made
        # The state that holds the least always has a way on.
        order = sorted(best.values(), key=lambda s: s.us)
        states = [*order[:width], *sorted(order[width:], key=lambda s: len(s.held))[:1]]
    path = states[0].path()
    times = [state.us - (state.before.us if state.before else 0.0) for state in path]
    local = frozenset(b for state in path for b in state.added)
    return Division(states[0].us, tuple(s.choice for s in path), local, tuple(times))


class _Search:
    """The choices at each kernel of a sequence."""

    def __init__(self, kernels: Sequence[Kernel], p: CostParameters, spec: SpyreSpec) -> None:
        self.kernels, self.parameters, self.spec = kernels, p, spec
        self.first: dict[int, int] = {}
        self.last: dict[int, int] = {}
        for number, kernel in enumerate(kernels):
            for buffer in kernel.operands:
                self.first.setdefault(buffer, number)
                self.last[buffer] = number
        self.possible = _possible(kernels)

    def steps(self, number: int, state: _State) -> Iterator[_State]:
        """States behind kernel `number` that follow from one before it."""
        kernel = self.kernels[number]
        for choice, candidate in enumerate(kernel.candidates):
            if self._agrees(number, candidate, state.held):
                for added in self._additions(number, candidate, state.held):
                    if (made := self._next(number, choice, state, added)) is not None:
                        yield made

    def _agrees(self, number: int, candidate: DividedKernel, held: Held) -> bool:
        """Return whether the kernel sees the slices of what is held."""
        kernel = self.kernels[number]
        return all(
            b not in held or place in kernel.copied or held[b][0] == candidate.views[place]
            for place, b in enumerate(kernel.operands)
        )

    def _additions(self, number: int, candidate: DividedKernel, held: Held) -> Iterator[Held]:
        """Ways to hold the buffers that come up at this kernel, and inputs that later kernels read too."""
        new: dict[int, tuple[Hashable, int]] = {}
        clashing = set[int]()
        kernel = self.kernels[number]
        for place, buffer in enumerate(kernel.operands):
            view, size = candidate.views[place], candidate.sizes[place]
            if buffer == OUTSIDE or not self._comes_up(number, place, held):
                continue
            if view not in self.possible[buffer] or new.get(buffer, (view, size))[0] != view:
                clashing.add(buffer)
            else:
                new[buffer] = view, size
        options = [[True, False] if b not in clashing else [False] for b in new]
        for chosen in product(*options):
            yield {b: new[b] for b, kept in zip(new, chosen, strict=True) if kept}

    def _comes_up(self, number: int, place: int, held: Held) -> bool:
        """Return whether a buffer can begin to be held at a kernel."""
        buffer = self.kernels[number].operands[place]
        if place in self.kernels[number].copied:
            return buffer not in held and self.last[buffer] > number
        return self.first[buffer] == number

    def _next(self, number: int, choice: int, state: _State, added: Held) -> _State | None:
        kernel = self.kernels[number]
        held = {**state.held, **added}
        dying = {b for b in held if self.last[b] == number}
        used = sum(size for _, size in held.values()) - self._taken_over(kernel, choice, held, dying)
        if used > self.spec.lx_usable_bytes:
            return None
        views = kernel.candidates[choice].views
        local = frozenset(n for n, b in enumerate(kernel.operands) if b in held and held[b][0] == views[n])
        candidate = kernel.candidates[choice]
        us = state.us + price_us(candidate, local, self.parameters, self.spec)
        for place in kernel.copied:
            if kernel.operands[place] in added:
                us += copy_us(candidate, place, self.parameters, self.spec)
        kept = {b: slices for b, slices in held.items() if b not in dying}
        return _State(us, kept, state, choice, tuple(added))

    def _taken_over(self, kernel: Kernel, choice: int, held: Held, dying: set[int]) -> int:
        """Bytes that the result shares with an input that nobody needs any more."""
        result = kernel.operands[-1]
        inputs = {kernel.operands[n] for n in kernel.candidates[choice].in_place} - {result}
        if result in held and any(b in dying and held[b][1] == held[result][1] for b in inputs):
            return held[result][1]
        return 0


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


__all__ = ["OUTSIDE", "DividedKernel", "Division", "Kernel", "divide_together", "price_us"]
