"""Certainty of a claim about the machine or its files.

Decision: docs/decisions/0011-certainty.md
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from functools import total_ordering


@total_ordering
class Tag(Enum):
    """Certainty of a claim; the weaker one is the smaller one."""

    INFERRED = "I"  # our own reasoning
    LIKELY = "L"  # one source, or code only
    CERTAIN = "C"  # front-end code and a real file, or two independent sources

    def __lt__(self, other: Tag) -> bool:
        """Return whether this is weaker than `other`."""
        order = list(Tag)
        return order.index(self) < order.index(other)

    @property
    def word(self) -> str:
        """The tag as printed on reference pages."""
        return self.name.lower()

    @staticmethod
    def weakest(tags: Iterable[Tag]) -> Tag:
        """Return the weakest of some tags; certain if there are none."""
        return min(tags, default=Tag.CERTAIN)
