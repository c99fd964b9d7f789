"""Mutants of addresses, of lifetimes, and of the order of launches.

Each function changes a draft and says what it did, or returns None where the draw has no place in this bundle.
"""

from __future__ import annotations

import random
from dataclasses import replace

from tests.mutants.image import LX, POOL, Draft, Node, Place
from tests.mutants.lifetimes import STICK, Buffer, Footprint, buffers, first_misled, footprint

STEPS = (1, 1, 1, 2, 4, 8, 64)


def _operand(draft: Draft, rng: random.Random, *, reads: bool = False) -> tuple[Node, int]:
    node = rng.choice(draft.nodes)
    return node, rng.randrange(len(node.places) - reads)


def _said(node: Node, operand: int, what: str) -> str:
    return f"{node.file} operand {operand}: {what}"


def one_core(draft: Draft, rng: random.Random) -> str | None:
    """One core of one operand starts some sticks off."""
    node, operand = _operand(draft, rng)
    places = list(node.places[operand])
    core, step = rng.randrange(len(places)), rng.choice(STEPS) * rng.choice((-1, 1)) * STICK
    places[core] = replace(places[core], offset=places[core].offset + step)
    if places[core].offset < 0:
        return None
    draft.change(node.moved(operand, places))
    return _said(node, operand, f"core {core} by {step} bytes")


def odd_bytes(draft: Draft, rng: random.Random) -> str | None:
    """An address is no multiple of a stick."""
    node, operand = _operand(draft, rng)
    step = rng.choice((2, 4, 32, 64))
    draft.change(node.moved(operand, [replace(p, offset=p.offset + step) for p in node.places[operand]]))
    return _said(node, operand, f"all cores by {step} bytes")


def all_cores(draft: Draft, rng: random.Random) -> str | None:
    """An operand starts some sticks off on every core: the wrong offset of a view."""
    node, operand = _operand(draft, rng)
    step = rng.choice(STEPS) * rng.choice((-1, 1)) * STICK
    if min(p.offset for p in node.places[operand]) + step < 0:
        return None
    draft.change(node.moved(operand, [replace(p, offset=p.offset + step) for p in node.places[operand]]))
    return _said(node, operand, f"all cores by {step} bytes")


def other_base(draft: Draft, rng: random.Random) -> str | None:
    """An operand is taken from another argument, or from the pool instead of an argument."""
    node, operand = _operand(draft, rng)
    old = node.places[operand][0].base
    if old == LX:
        return None
    new = rng.choice([base for base in draft.image.bases if base != old])
    first = min(p.offset for p in node.places[operand]) if rng.random() < 0.5 else 0
    draft.change(node.moved(operand, [Place(new, p.offset - first) for p in node.places[operand]]))
    return _said(node, operand, f"{new} for {old}, less {first}")


def exchanged_cores(draft: Draft, rng: random.Random) -> str | None:
    """Two cores have each other's address."""
    node, operand = _operand(draft, rng)
    places = list(node.places[operand])
    if len(set(places)) < 2:
        return None
    one, other = rng.sample(range(len(places)), 2)
    if places[one] == places[other]:
        return None
    places[one], places[other] = places[other], places[one]
    draft.change(node.moved(operand, places))
    return _said(node, operand, f"cores {one} and {other} exchanged")


def turned_cores(draft: Draft, rng: random.Random) -> str | None:
    """Every core has the address of the next."""
    node, operand = _operand(draft, rng)
    places = node.places[operand]
    if len(set(places)) < 2:
        return None
    draft.change(node.moved(operand, (*places[1:], places[0])))
    return _said(node, operand, "cores turned by one")


def exchanged_operands(draft: Draft, rng: random.Random) -> str | None:
    """Two operands of a launch have each other's addresses."""
    node = rng.choice(draft.nodes)
    kinds = [[p.base == LX for p in places] for places in node.places]
    pairs = [
        (a, b) for a in range(len(kinds)) for b in range(a) if kinds[a] == kinds[b] and node.places[a] != node.places[b]
    ]
    if not pairs:
        return None
    a, b = rng.choice(pairs)
    first, second = node.places[a], node.places[b]
    draft.change(node.moved(a, second).moved(b, first))
    return f"{node.file}: operands {b} and {a} exchanged"


def other_stride(draft: Draft, rng: random.Random) -> str | None:
    """The cores lie twice or half as far apart, or all on one place."""
    node, operand = _operand(draft, rng)
    places, factor = node.places[operand], rng.choice((0, 0.5, 2))
    first = places[0].offset
    made = [replace(p, offset=first + int((p.offset - first) * factor) // STICK * STICK) for p in places]
    if made == list(places) or min(p.offset for p in made) < 0:
        return None
    draft.change(node.moved(operand, made))
    return _said(node, operand, f"cores {factor} times as far apart")


def _shift(draft: Draft, buffer: Buffer, low: int) -> None:
    by = low - buffer.low
    for number, operand in sorted(buffer.uses):
        node = next(n for n in draft.nodes if n.number == number)
        draft.change(node.moved(operand, [replace(p, offset=p.offset + by) for p in node.places[operand]]))


def _fits(draft: Draft, buffer: Buffer, low: int) -> bool:
    room = draft.image.pool_bytes if buffer.base == POOL else 2 << 20
    return low >= 0 and low + buffer.high - buffer.low <= room and low != buffer.low


def _live_together(one: Buffer, other: Buffer) -> bool:
    return one.base == other.base and one.first < other.last and other.first < one.last


def on_another(draft: Draft, rng: random.Random) -> str | None:
    """A buffer gets the place of one that is needed at the same time, everywhere it is used."""
    found = buffers(draft.image)
    mine = rng.choice(found)
    others = [b for b in found if b is not mine and _live_together(mine, b)]
    if not others:
        return None
    other = rng.choice(others)
    low = other.low + rng.choice((0, 0, 0, STICK, -STICK))
    if not _fits(draft, mine, low):
        return None
    _shift(draft, mine, low)
    return f"{mine.base} buffer of launches {mine.first}..{mine.last} on that of {other.first}..{other.last} at {low}"


def anywhere(draft: Draft, rng: random.Random) -> str | None:
    """A buffer gets another place of the same memory, everywhere it is used."""
    mine = rng.choice(buffers(draft.image))
    tops = sorted({b.low for b in buffers(draft.image) if b.base == mine.base} | {mine.low + STICK})
    low = rng.choice(tops)
    if not _fits(draft, mine, low):
        return None
    _shift(draft, mine, low)
    return f"{mine.base} buffer of launches {mine.first}..{mine.last} at {low} for {mine.low}"


def one_use(draft: Draft, rng: random.Random) -> str | None:
    """One launch uses a buffer where another buffer is, or was, that the others do not know of."""
    found = buffers(draft.image)
    mine = rng.choice(found)
    number, operand = rng.choice(sorted(mine.uses))
    others = [b for b in found if b.base == mine.base and b.low != mine.low and b.high - b.low >= mine.high - mine.low]
    if not others:
        return None
    other = rng.choice(others)
    node = next(n for n in draft.nodes if n.number == number)
    by = other.low - mine.low
    draft.change(node.moved(operand, [replace(p, offset=p.offset + by) for p in node.places[operand]]))
    return _said(node, operand, f"at {other.low}, where the buffer of {other.first}..{other.last} is")


def freed_early(draft: Draft, rng: random.Random) -> str | None:
    """A buffer that begins while another one is still needed gets its place, as if that one were free already."""
    found = buffers(draft.image)
    pairs = [(a, b) for a in found for b in found if a.base == b.base and b.first < a.first < b.last]
    if not pairs:
        return None
    mine, other = rng.choice(pairs)
    if not _fits(draft, mine, other.low):
        return None
    _shift(draft, mine, other.low)
    return f"{mine.base} buffer of launches {mine.first}..{mine.last} on that of {other.first}..{other.last}"


def _moved(draft: Draft, at: int, to: int) -> None:
    node = draft.nodes.pop(at)
    draft.nodes.insert(to, node)


def swapped(draft: Draft, rng: random.Random) -> str | None:
    """Two neighbours run in the other order."""
    at = rng.randrange(len(draft.nodes) - 1)
    first, second = draft.nodes[at : at + 2]
    draft.nodes[at : at + 2] = [second, first]
    return _ordered(draft, {first.number, second.number}, f"{first.file} after {second.file}")


def elsewhere(draft: Draft, rng: random.Random) -> str | None:
    """A launch runs earlier or later."""
    at, to = rng.sample(range(len(draft.nodes)), 2)
    node = draft.nodes[at]
    _moved(draft, at, to)
    return _ordered(draft, {node.number}, f"{node.file} at place {to}")


def dropped(draft: Draft, rng: random.Random) -> str | None:
    """A launch is left out."""
    node = draft.nodes.pop(rng.randrange(len(draft.nodes)))
    return _ordered(draft, {node.number}, f"{node.file} left out")


def twice(draft: Draft, rng: random.Random) -> str | None:
    """A launch runs a second time, at once or later."""
    at = rng.randrange(len(draft.nodes))
    node, to = draft.nodes[at], rng.choice((at + 1, rng.randint(at + 1, len(draft.nodes))))
    draft.nodes.insert(to, node)
    return _ordered(draft, {node.number}, f"{node.file} again at place {to}")


def _ordered(draft: Draft, moved: set[int], text: str) -> str:
    misled = first_misled(draft.image.nodes, draft.nodes)
    draft.touched |= moved | ({misled} if misled is not None else set())
    return text


ADDRESS = (one_core, one_core, all_cores, all_cores, other_base, other_base, exchanged_cores, turned_cores,
           exchanged_operands, other_stride, odd_bytes)  # fmt: skip
LIFETIME = (on_another, freed_early, freed_early, one_use, one_use, anywhere)
ORDER = (swapped, elsewhere, elsewhere, dropped, dropped, twice)

__all__ = ["ADDRESS", "LIFETIME", "ORDER", "Footprint", "footprint"]
