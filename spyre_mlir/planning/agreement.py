"""Divisions that are considered only so that kernels can see a buffer alike.

A kernel is divided over most of the cores that it can have, so that the search has few divisions to choose from. Some
neighbours can have few cores alone: those that reduce the rows of a tensor of few sticks of columns. What they read
stays in the scratchpads only if the kernel that makes it is on few cores, too, and what that reads if the next one is.

Decision: docs/decisions/0141-cores-before-reread.md
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from functools import cache

from spyre_mlir.planning.divided_kernels import OUTSIDE, DividedKernel, Kernel

Spare = Callable[[int], Sequence[DividedKernel]]
"""By the number of a kernel, the divisions that it has otherwise not to choose from."""

Users = Mapping[int, Sequence[tuple[int, int]]]
"""By buffer, the kernels that use it, each with the place of the operand."""


def with_spare(kernels: Sequence[Kernel], spare: Spare, most_bytes: int) -> list[Kernel]:
    """Return the kernels, with more divisions where a buffer that several use is seen alike by none of those they have.

    A division that is added for a buffer asks the other users of its operands for slices, too. A buffer that may be
    copied needs two kernels that see it alike: the others read the original.

    Args:
        kernels: in their order.
        spare: divisions that may be added to those of a kernel.
        most_bytes: of a slice that a scratchpad holds.
    """
    users, spare = _users(kernels), cache(spare)
    copied = frozenset([kernel.operands[place] for kernel in kernels for place in kernel.copied])
    added, clashing = _Added(kernels, users, copied, spare, most_bytes), list[int]()
    for buffer, places in users.items():
        if not _agreed([_views(kernels[n].candidates, place) for n, place in places], copied=buffer in copied):
            clashing.append(buffer)
    if not clashing:
        return list(kernels)
    for buffer in clashing:
        added.ask(buffer, added.possible(buffer) & added.seen(buffer) if buffer in copied else added.possible(buffer))
    chosen = {n: tuple([c for i, c in enumerate(spare(n)) if i in of]) for n, of in added.choices.items()}
    return [replace(k, candidates=(*k.candidates, *chosen.get(n, ()))) for n, k in enumerate(kernels)]


class _Added:
    """Divisions that are added, by the number of the kernel."""

    def __init__(
        self, kernels: Sequence[Kernel], users: Users, copied: Set[int], spare: Spare, most_bytes: int
    ) -> None:
        self._kernels, self._users, self._copied = kernels, users, copied
        self._spare, self._most_bytes = spare, most_bytes
        self.choices: dict[int, set[int]] = {}
        self._asked: dict[int, set[Hashable]] = {}
        self._possible: dict[int, Set[Hashable]] = {}

    def possible(self, buffer: int) -> Set[Hashable]:
        """Slices of a buffer in which kernels can agree on it with more divisions, and that fit."""
        if buffer not in self._possible:
            places = self._users[buffer]
            every = [(*self._kernels[n].candidates, *self._spare(n)) for n, _ in places]
            views = [_views(found, place, self._most_bytes) for found, (_, place) in zip(every, places, strict=True)]
            self._possible[buffer] = _agreed(views, copied=buffer in self._copied)
        return self._possible[buffer]

    def seen(self, buffer: int) -> Set[Hashable]:
        """Slices that a kernel sees of a buffer with the divisions that it has anyway."""
        return set[Hashable]().union(*[_views(self._kernels[n].candidates, place) for n, place in self._users[buffer]])

    def ask(self, buffer: int, views: Set[Hashable]) -> None:
        """Add the divisions that see a buffer in these slices, and those that others need then."""
        queue: list[tuple[int, Set[Hashable]]] = [(buffer, views)]
        for asked, wanted in queue:
            for number, place in self._users[asked]:
                chosen = self.choices.setdefault(number, set())
                for index, candidate in enumerate(self._spare(number)):
                    if index not in chosen and candidate.views[place] in wanted:
                        chosen.add(index)
                        queue += self._following(number, candidate)

    def _following(self, number: int, candidate: DividedKernel) -> Iterable[tuple[int, Set[Hashable]]]:
        """What a division asks of the other users of its operands."""
        for place, buffer in enumerate(self._kernels[number].operands):
            view, asked = candidate.views[place], self._asked.setdefault(buffer, set())
            if buffer in self._users and view not in asked and view in self.possible(buffer):
                asked.add(view)
                yield buffer, {view}


def _users(kernels: Sequence[Kernel]) -> Users:
    """The buffers that several kernels use."""
    found: dict[int, list[tuple[int, int]]] = {}
    for number, kernel in enumerate(kernels):
        for place, buffer in enumerate(kernel.operands):
            if buffer != OUTSIDE:
                found.setdefault(buffer, []).append((number, place))
    return {buffer: places for buffer, places in found.items() if len({n for n, _ in places}) > 1}


def _agreed(views: Sequence[Set[Hashable]], *, copied: bool) -> Set[Hashable]:
    """Slices that all users of a buffer can see; of one that may be copied, those that two of them can."""
    if not copied:
        return set[Hashable].intersection(*map(set, views))
    seen = Counter(view for one in views for view in one)
    return {view for view, count in seen.items() if count > 1}


def _views(candidates: Sequence[DividedKernel], place: int, most_bytes: int | None = None) -> set[Hashable]:
    return {
        c.views[place]
        for c in candidates
        if c.views[place] is not None and (most_bytes is None or c.sizes[place] <= most_bytes)
    }


__all__ = ["Spare", "with_spare"]
