"""Repetitions in a sequence of ops: equal pieces, one behind the other or apart, in about linear time.

Pieces come from three sources. The module path of the ops names layers (``layers.0``, ``layers.1``): the ops of each
are a piece. Where there are no paths, as in a graph that Dynamo captured, a distance at which the sequence equals
itself for long is the length of a piece. Ops with side effects, such as collectives, belong to no piece: what stands
between two of them is one. In any case only equal signatures make pieces equal; the sources just say where to cut.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

LEAST_CALLS = 2
LEAST_SAVED = 24
_CALL = 8  # ops whose lowering takes as long as that of a call, and the launch it adds
_CALL_OF_LAUNCH = 2  # the same for what is a launch by itself anyway
_WINDOW = 4  # signatures that have to agree before a distance counts
_NEAR = 8  # occurrences of a window whose distances count
_DISTANCES = 8  # distances that are tried, the most frequent first
# A cut at the border of a module is worth this many times the ops that another cut would save.
_ALIGNED = 1.5


@dataclass(frozen=True)
class Repetition:
    """Equal pieces of a sequence that do not overlap.

    Attributes:
        starts: where they begin.
        length: ops in each.
    """

    starts: tuple[int, ...]
    length: int

    def saved(self, call: int) -> int:
        """Ops that need not be lowered if the piece is there once, less what its calls take."""
        return (len(self.starts) - 1) * self.length - len(self.starts) * call


@dataclass(frozen=True)
class _Piece:
    """A piece that may be there more than once.

    Attributes:
        start: where it begins.
        length: ops in it.
        aligned: whether it was cut at borders that the program has.
        call: ops whose lowering takes as long as a call of it.
    """

    start: int
    length: int
    aligned: bool
    call: int = _CALL


def numbered_prefixes(path: str) -> list[str]:
    """Return the prefixes of a module path that end in a number, the shortest first."""
    parts = path.split(".")
    return [".".join(parts[: n + 1]) for n, part in enumerate(parts) if part.isdigit()]


def best_repetition(
    signatures: Sequence[int], paths: Sequence[str], widths: Sequence[int], effects: Sequence[int] = ()
) -> Repetition | None:
    """Return the repetition that saves most ops; None if none pays.

    Args:
        signatures: equal numbers for ops that may stand for each other.
        paths: module path of every op; empty where it is not known.
        widths: per op, how many values are computed before it and used by it or behind it.
        effects: numbers of the ops with side effects, in order.
    """
    index = _Index(signatures)
    best: tuple[float, Repetition] | None = None
    sources = (_modules(signatures, paths), _between(signatures, effects), _periods(signatures, paths, widths))
    for piece in chain(*sources):
        found = index.matches(piece.start, piece.length)
        if len(found.starts) < LEAST_CALLS or (saved := found.saved(piece.call)) < LEAST_SAVED:
            continue
        score = saved * (_ALIGNED if piece.aligned else 1.0)
        if best is None or score > best[0]:
            best = score, found
    return None if best is None else best[1]


class _Index:
    """Places of every window of signatures."""

    def __init__(self, signatures: Sequence[int]) -> None:
        self._signatures = tuple(signatures)
        self._places: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
        for at in range(len(signatures)):
            self._places[self._signatures[at : at + _WINDOW]].append(at)

    def matches(self, start: int, length: int) -> Repetition:
        """Every place that has the signatures of a piece, from the left, none over another."""
        piece = self._signatures[start : start + length]
        # The piece itself is one of them, whatever stands before it.
        around = [at for at in self._candidates(start, length) if self._signatures[at : at + length] == piece]
        found: list[int] = []
        for at in around:
            if (abs(at - start) >= length or at == start) and (not found or at - found[-1] >= length):
                found.append(at)
        return Repetition(tuple(found), length)

    def _candidates(self, start: int, length: int) -> list[int]:
        if length >= _WINDOW:
            return self._places[self._signatures[start : start + _WINDOW]]
        return list(range(len(self._signatures) - length + 1))


def _modules(signatures: Sequence[int], paths: Sequence[str]) -> Iterator[_Piece]:
    """The ops of every numbered module that stand together; equal ones once."""
    seen: set[tuple[int, ...]] = set()
    for start, end in _stretches(paths):
        piece = tuple(signatures[start:end])
        if piece not in seen:
            seen.add(piece)
            yield _Piece(start, end - start, aligned=True)


def _between(signatures: Sequence[int], effects: Sequence[int]) -> Iterator[_Piece]:
    """The ops between neighbours of those with side effects, whose launch ends there anyway; equal ones once."""
    seen: set[tuple[int, ...]] = set()
    for before, end in pairwise(effects):
        piece = tuple(signatures[before + 1 : end])
        if piece and piece not in seen:
            seen.add(piece)
            yield _Piece(before + 1, len(piece), aligned=True, call=_CALL_OF_LAUNCH)


def _stretches(paths: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Where the ops under one numbered prefix begin and end."""
    open_: dict[str, int] = {}
    for at, path in enumerate((*paths, "")):
        own = numbered_prefixes(path)
        for prefix in [p for p in open_ if p not in own]:
            yield open_.pop(prefix), at
        for prefix in own:
            open_.setdefault(prefix, at)


def _periods(signatures: Sequence[int], paths: Sequence[str], widths: Sequence[int]) -> Iterator[_Piece]:
    """Pieces of stretches that repeat themselves at a frequent distance."""
    for distance in _distances(signatures):
        start = 0
        while start < len(signatures) - distance:
            if signatures[start] != signatures[start + distance]:
                start += 1
                continue
            end = start
            while end + distance < len(signatures) and signatures[end] == signatures[end + distance]:
                end += 1
            if end + distance - start >= LEAST_CALLS * distance:
                yield _cut(start, end + distance, distance, paths, widths)
            start = end + 1


def _distances(signatures: Sequence[int]) -> list[int]:
    """Distances at which windows of signatures recur most often."""
    latest: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
    votes: Counter[int] = Counter()
    for at in range(len(signatures) - _WINDOW + 1):
        places = latest[tuple(signatures[at : at + _WINDOW])]
        votes.update(at - before for before in places[-_NEAR:])
        places.append(at)
    # Of equally frequent ones the shorter: twice the length of a layer is a distance, too.
    return [distance for distance, _ in sorted(votes.items(), key=lambda vote: (-vote[1], vote[0]))[:_DISTANCES]]


def _cut(start: int, end: int, length: int, paths: Sequence[str], widths: Sequence[int]) -> _Piece:
    """Where the first piece of a stretch begins: at the border of a module, else where the fewest values live."""
    for at in range(start, min(start + length, end - (LEAST_CALLS - 1) * length)):
        before = set(numbered_prefixes(paths[at - 1])) if at else set[str]()
        fresh = [p for p in numbered_prefixes(paths[at]) if p not in before]
        if fresh and fresh[0] not in numbered_prefixes(paths[at + length]):
            one = fresh[0] in numbered_prefixes(paths[at + length - 1])  # and not two modules or more
            return _Piece(at, length, aligned=one)
    most = (end - start) // length
    possible = [at for at in range(start, start + length) if (end - at) // length == most]
    return _Piece(min(possible, key=lambda at: widths[at]), length, aligned=False)


__all__ = ["LEAST_CALLS", "LEAST_SAVED", "Repetition", "best_repetition", "numbered_prefixes"]
