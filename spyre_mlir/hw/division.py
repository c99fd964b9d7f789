"""Division of an iteration space over cores: equal slices, spans within reach, the longest loops first.

Decision: docs/decisions/0007-equal-slices.md
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from math import prod

from spyre_mlir.hw.spec import STICK_BYTES, SpyreSpec


@dataclass(frozen=True)
class DividedLoop:
    """One loop, with the facts that the divider needs.

    Attributes:
        name: its name.
        units: how many indivisible pieces it has: sticks in the lanes, else elements.
        kept: whether the result has it.
        divisible: whether it may be divided at all.
    """

    name: str
    units: int
    kept: bool
    divisible: bool = True


@dataclass(frozen=True)
class Footprint:
    """Distances between the sticks of one operand.

    Attributes:
        strides: sticks between neighbouring units of each loop.
        piece: sticks from the first to the last one of a single unit of every loop.
    """

    strides: Mapping[str, int]
    piece: int = 0


class Refusal(Enum):
    """Why a division is no candidate."""

    TWO_SUMS = "two summed loops are divided"
    SPAN = "an operand spans more than a core reaches"
    FEW_CORES = "too few cores are busy"


class SpanError(ValueError):
    """No legal division of an operand fits a core's reach."""


def divisors(number: int, most: int) -> list[int]:
    """Divisors of `number` up to `most`, ascending."""
    return list(_divisors(number, most))


@lru_cache(maxsize=1 << 10)
def _divisors(number: int, most: int) -> tuple[int, ...]:
    return tuple([d for d in range(1, min(number, most) + 1) if number % d == 0])


def span_bytes(loops: Sequence[DividedLoop], splits: Mapping[str, int], operand: Footprint) -> int:
    """Return the bytes from the first to the end of the last stick that one core touches."""
    steps = sum(operand.strides.get(lp.name, 0) * (lp.units // splits[lp.name] - 1) for lp in loops)
    return (steps + operand.piece + 1) * STICK_BYTES


def divide(loops: Sequence[DividedLoop], operands: Sequence[Footprint], spec: SpyreSpec) -> dict[str, int]:
    """Return splits by loop name: first those that spans require, then result loops by size, then one summed loop.

    Where that order leaves an operand out of reach, the legal division over the most cores.

    Raises:
        SpanError: an operand stays out of reach under every division.
    """
    try:
        return _usual(loops, operands, spec)
    except SpanError:
        legal = list(divisions(loops, operands, 1, spec))
        if not legal:
            raise
        summed = [lp.name for lp in loops if not lp.kept]
        return min(legal, key=lambda s: (-prod(s.values()), prod(s[name] for name in summed)))


def _usual(loops: Sequence[DividedLoop], operands: Sequence[Footprint], spec: SpyreSpec) -> dict[str, int]:
    splits = {lp.name: 1 for lp in loops}
    for operand in operands:
        _bring_within_reach(loops, splits, operand, spec)
    for lp in sorted((lp for lp in loops if lp.kept and lp.divisible), key=lambda lp: -lp.units):
        _grow(lp, splits, spec)
    summed = [lp for lp in loops if not lp.kept and lp.divisible]
    if len(summed) == 1 and splits[summed[0].name] == 1:
        _grow(summed[0], splits, spec)
    return splits


def divisions(
    loops: Sequence[DividedLoop], operands: Sequence[Footprint], least: int, spec: SpyreSpec
) -> Iterator[dict[str, int]]:
    """Return every legal division over at least so many cores; at most one summed loop is divided."""
    found = _choose(loops, {}, spec.cores_per_card, least)
    return (splits for splits in found if _refusal(splits, loops, operands, spec) is None)


def judged_divisions(
    loops: Sequence[DividedLoop], operands: Sequence[Footprint], spec: SpyreSpec
) -> Iterator[tuple[dict[str, int], Refusal | None]]:
    """Return every division into equal slices over the cores of a card, and why it is refused if it is."""
    for splits in _choose(loops, {}, spec.cores_per_card, 1):
        yield splits, _refusal(splits, loops, operands, spec)


def _refusal(
    splits: Mapping[str, int], loops: Sequence[DividedLoop], operands: Sequence[Footprint], spec: SpyreSpec
) -> Refusal | None:
    """Why a division is refused on whatever number of cores."""
    if sum(splits[lp.name] > 1 for lp in loops if not lp.kept) > 1:
        return Refusal.TWO_SUMS
    near = all(span_bytes(loops, splits, operand) <= spec.span_bytes for operand in operands)
    return None if near else Refusal.SPAN


def _choose(rest: Sequence[DividedLoop], chosen: dict[str, int], cores: int, least: int) -> Iterator[dict[str, int]]:
    """Slices of the loops that are left, over at most and at least so many cores, after those that are chosen."""
    if not rest:
        if least <= 1:
            yield chosen
        return
    first, *others = rest
    reach = prod([lp.units for lp in others if lp.divisible])
    for split in _divisors(first.units, cores) if first.divisible else (1,):
        wanted = -(-least // split)
        if wanted <= min(reach, cores // split):
            yield from _choose(others, {**chosen, first.name: split}, cores // split, wanted)


def _grow(lp: DividedLoop, splits: dict[str, int], spec: SpyreSpec) -> None:
    room = spec.cores_per_card // (prod(splits.values()) // splits[lp.name])
    splits[lp.name] = max(d for d in divisors(lp.units, room) if d % splits[lp.name] == 0)


def _bring_within_reach(
    loops: Sequence[DividedLoop], splits: dict[str, int], operand: Footprint, spec: SpyreSpec
) -> None:
    """Splits the loops with the longest strides just enough."""
    if span_bytes(loops, splits, operand) <= spec.span_bytes:  # An op without loops touches one stick.
        return
    for lp in sorted(loops, key=lambda lp: -operand.strides.get(lp.name, 0) * lp.units):
        if span_bytes(loops, splits, operand) <= spec.span_bytes:
            return
        room = spec.cores_per_card // (prod(splits.values()) // splits[lp.name])
        options = divisors(lp.units, room) if lp.divisible and operand.strides.get(lp.name, 0) else [splits[lp.name]]
        for split in options:
            splits[lp.name] = max(split, splits[lp.name])
            if span_bytes(loops, splits, operand) <= spec.span_bytes:
                return
    if (span := span_bytes(loops, splits, operand)) > spec.span_bytes:
        raise SpanError(f"a core would touch {span} bytes of one tensor, it reaches {spec.span_bytes}")
