"""Which bytes every operand of a bundle touches, and how long they are needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from spyre_mlir.dialects.superdsc.model.descriptor import IndirectKind
from tests.mutants.image import LX, POOL, Image, Node

STICK = 128


@dataclass(frozen=True)
class Footprint:
    """The bytes that all cores together touch of an operand, gaps included."""

    base: str
    low: int
    high: int

    def meets(self, other: Footprint) -> bool:
        """Whether they share bytes."""
        return self.base == other.base and self.low < other.high and other.low < self.high


@dataclass
class Buffer:
    """Results that are read as one: who writes and reads them, where, from when to when."""

    uses: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])  # (launch, operand)
    base: str = ""
    low: int = 0
    high: int = 0

    @property
    def first(self) -> int:
        """The launch that writes it first."""
        return min(number for number, _ in self.uses)

    @property
    def last(self) -> int:
        """The launch that reads it last."""
        return max(number for number, _ in self.uses)


def footprint(node: Node, operand: int) -> Footprint:
    """From the first byte that any core touches to behind the last; a gathered table may be touched anywhere."""
    places, view = node.places[operand], node.view
    op = view.operands[operand]
    if op.indirect is not None and op.indirect.kind is IndirectKind.VALUE:
        return Footprint(places[0].base, 0, 1 << 40)
    strides, lanes = op.stick_strides(), op.stick_lanes
    last = sum((-(-d.per_core // lanes.get(d.label, 1)) - 1) * strides.get(d.label, 0) for d in view.dims)
    offsets = [p.offset for p in places]
    return Footprint(places[0].base, min(offsets), max(offsets) + (last + 1) * STICK)


def buffers(image: Image) -> list[Buffer]:
    """The buffers in the pool and in the scratchpads."""
    owner: dict[tuple[int, int], Buffer] = {}
    for at, node in enumerate(image.nodes):
        output = len(node.places) - 1
        if node.places[output][0].base in (POOL, LX):
            owner[node.number, output] = Buffer({(node.number, output)})
        for operand, writers in enumerate(_sources(image.nodes, at)):
            if node.places[operand][0].base not in (POOL, LX):
                continue
            mine = Buffer({(node.number, operand)})
            for number in writers:
                mine.uses |= owner[number, len(image.nodes[number].places) - 1].uses
            owner.update(dict.fromkeys(mine.uses, mine))
    found = list({id(b): b for b in owner.values()}.values())
    for one in found:
        parts = [footprint(image.nodes[n], o) for n, o in one.uses]
        one.base, one.low, one.high = parts[0].base, min(p.low for p in parts), max(p.high for p in parts)
    return sorted(found, key=lambda b: (b.first, b.last))


def first_misled(correct: Sequence[Node], changed: Sequence[Node]) -> int | None:
    """The first launch that reads bytes whose last writer is another launch than it should be."""
    wanted = {node.number: _sources(correct, at) for at, node in enumerate(correct)}
    for at, node in enumerate(changed):
        if _sources(changed, at) != wanted[node.number]:
            return node.number
    return None


def _sources(nodes: Sequence[Node], at: int) -> list[list[int]]:
    """Per operand that is read, the launches before that wrote what it touches, newest first, until it is covered."""
    found: list[list[int]] = []
    for operand in range(len(nodes[at].places) - 1):
        touched, writers = footprint(nodes[at], operand), list[int]()
        for earlier in reversed(nodes[:at]):
            written = footprint(earlier, len(earlier.places) - 1)
            if written.meets(touched):
                writers.append(earlier.number)
                if written.low <= touched.low and touched.high <= written.high:
                    break
        found.append(writers)
    return found
