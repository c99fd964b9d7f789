"""Draws mutants: as many of each kind, from seeds alone, before any of them runs."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from spyre_mlir.errors import SpyreError
from tests.mutants.image import Draft, Image
from tests.mutants.placing import ADDRESS, LIFETIME, ORDER
from tests.mutants.shaping import EXTENT, LAYOUT, SPLIT

Edit = Callable[[Draft, random.Random], str | None]
KINDS: Mapping[str, tuple[Edit, ...]] = {
    "address": ADDRESS,
    "split": SPLIT,
    "extent": EXTENT,
    "layout": LAYOUT,
    "lifetime": LIFETIME,
    "order": ORDER,
}
_TRIES = 200


@dataclass(frozen=True)
class Mutant:
    """A mutant as it was drawn.

    Args:
        number: its number.
        kind: address, split, extent, layout, lifetime or order.
        edit: what was done.
        text: to what.
        seed: gives the same draft again.
    """

    number: int
    kind: str
    edit: Edit
    text: str
    seed: str

    def draft(self, image: Image) -> Draft:
        """The mutant's draft."""
        draft = Draft.of(image)
        assert self.edit(draft, random.Random(self.seed)) == self.text
        return draft

    def __str__(self) -> str:
        return f"{self.number} {self.kind} {self.edit.__name__}: {self.text}"


def draw(image: Image, count: int, seed: int = 0) -> list[Mutant]:
    """Mutants that differ from the bundle and from each other, and that can be written down."""
    found: list[Mutant] = []
    seen: set[str] = set()
    for number in range(count):
        kind = list(KINDS)[number % len(KINDS)]
        for attempt in range(_TRIES):
            key = f"{seed} {number} {attempt}"
            edit = random.Random(f"edit {key}").choice(KINDS[kind])
            draft = Draft.of(image)
            text = edit(draft, random.Random(key))
            if text is None or (mark := f"{edit.__name__} {text}") in seen or not _written(draft):
                continue
            seen.add(mark)
            found.append(Mutant(number, kind, edit, text, key))
            break
        else:
            raise AssertionError(f"no mutant of kind {kind} in {_TRIES} draws")
    return found


def _written(draft: Draft) -> bool:
    """Whether the draft can be written, and its text is not that of the correct bundle."""
    try:
        _, files = draft.bundle()
    except (SpyreError, KeyError, ValueError):
        return False
    moved = any(node.places != draft.image.nodes[node.number].places for node in draft.nodes)
    other = [node.number for node in draft.nodes] != list(range(len(draft.image.nodes)))
    changed = any(json.dumps(value) != json.dumps(draft.image.values[name]) for name, value in files.items())
    return changed or moved or other or draft.pool_bytes != draft.image.pool_bytes
