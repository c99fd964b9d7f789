"""The op cases: groups as the file has them, and one case per op and set of arguments."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tests.op_cases.notation import Tensor, parse

FILE = Path(__file__).parent.parent / "data" / "op_cases.json"


@dataclass(frozen=True)
class Case:
    """One op with one set of arguments.

    Attributes:
        group: number of its group in the file; names of groups are not unique.
        op: the op of a group over several, or None.
        expected_to_fail: whether those who wrote the cases say that it fails with them.
    """

    group: int
    test: str
    template: str
    op: str | None
    name: str
    words: tuple[str, ...] = field(compare=False)
    expected_to_fail: bool = False

    @property
    def id(self) -> str:
        """Unique among the cases."""
        return "-".join(filter(None, (f"{self.group:03}", self.test, self.op, self.name)))

    @property
    def arguments(self) -> list[Any]:
        """What the words stand for."""
        return [parse(word) for word in self.words]

    @property
    def elements(self) -> int:
        """Elements of all its tensors."""
        return sum(a.elements for a in self.arguments if isinstance(a, Tensor))


@dataclass(frozen=True)
class Group:
    """Cases of one test: the same template, and every op with every set of arguments."""

    number: int
    test: str
    template: str
    ops: tuple[str, ...]
    flags: tuple[str, ...]
    marks: tuple[str, ...]
    cases: tuple[Case, ...]


@cache
def groups() -> tuple[Group, ...]:
    """Every group of the file."""
    return tuple(_group(number, entry) for number, entry in enumerate(json.loads(FILE.read_text())))


def cases() -> Iterator[Case]:
    """Every case of every group."""
    for group in groups():
        yield from group.cases


def _group(number: int, entry: dict[str, Any]) -> Group:
    test, template = entry["test"], entry["template"]
    failing = set(entry["expect_fail"])
    found = tuple(
        Case(number, test, template, op, name, tuple(words), bool(failing & {name, f"{op}_{name}"}))
        for op in entry["ops"] or [None]
        for name, words in entry["cases"].items()
    )
    facts = (tuple(entry[key] or ()) for key in ("ops", "flags", "marks"))
    return Group(number, test, template, *facts, found)
