"""How sure a claim about the machine or its files is."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from functools import total_ordering


@total_ordering
class Tag(Enum):
    """A claim's certainty; the weaker one is the smaller one."""

    INFERRED = "I"  # our own reasoning
    LIKELY = "L"  # one source, or code only
    CERTAIN = "C"  # front-end code and a real file, or two independent sources

    def __lt__(self, other: Tag) -> bool:
        """Whether this is weaker than `other`."""
        order = list(Tag)
        return order.index(self) < order.index(other)

    @property
    def word(self) -> str:
        """The tag as reference pages print it."""
        return self.name.lower()

    @staticmethod
    def weakest(tags: Iterable[Tag]) -> Tag:
        """The weakest of some tags; certain if there are none."""
        return min(tags, default=Tag.CERTAIN)
