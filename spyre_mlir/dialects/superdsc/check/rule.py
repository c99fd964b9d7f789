"""Rules of the checker, and their findings."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

from spyre_mlir.dialects.superdsc.codec.cursor import Cursor

Subject = TypeVar("Subject")


class Severity(Enum):
    """Severity of a finding: the file is wrong, or only unusual."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True)
class Problem:
    """One place that violates a rule.

    Args:
        path: the place in the file.
        expected: what should stand there.
        got: what stands there.
        hint: what to try.
    """

    path: str
    expected: str
    got: str
    hint: str | None = None


@dataclass(frozen=True)
class Finding:
    """One place of one file that violates a named rule."""

    rule: str
    severity: Severity
    file: str
    path: str
    expected: str
    got: str
    hint: str | None = None

    def __str__(self) -> str:
        text = f"{self.severity.value}: {self.rule}: {self.file}: {self.path}: expected {self.expected}, got {self.got}"
        return text if self.hint is None else f"{text}\n  try: {self.hint}"


@dataclass(frozen=True)
class Rule(Generic[Subject]):
    """One rule: its name and meaning, its source and certainty, and the function that applies it.

    Args:
        name: stable, in small letters with dashes.
        severity: of its findings.
        meaning: one sentence.
        source: where the rule is stated.
        certainty: C certain, L likely, I inferred.
        find: yields every place that breaks the rule.
    """

    name: str
    severity: Severity
    meaning: str
    source: str
    certainty: str
    find: Callable[[Subject], Iterator[Problem]]

    def finding(self, file: str, problem: Problem) -> Finding:
        """Return a problem of this rule in a file as a finding."""
        return Finding(self.name, self.severity, file, problem.path, problem.expected, problem.got, problem.hint)


def _rule(
    severity: Severity, source: str, certainty: str
) -> Callable[[Callable[[Subject], Iterator[Problem]]], Rule[Subject]]:
    def declare(find: Callable[[Subject], Iterator[Problem]]) -> Rule[Subject]:
        name = find.__name__.replace("_", "-")
        return Rule(name, severity, inspect.cleandoc(find.__doc__ or "").splitlines()[0], source, certainty, find)

    return declare


def error(source: str, certainty: str) -> Callable[[Callable[[Subject], Iterator[Problem]]], Rule[Subject]]:
    """Declare a rule that a correct file satisfies; the function's name and docstring become the rule's."""
    return _rule(Severity.ERROR, source, certainty)


def warning(source: str, certainty: str) -> Callable[[Callable[[Subject], Iterator[Problem]]], Rule[Subject]]:
    """Declare a rule that files usually satisfy; the function's name and docstring become the rule's."""
    return _rule(Severity.WARNING, source, certainty)


def problem(place: Cursor, expected: str, got: str | None = None, hint: str | None = None) -> Problem:
    """Return a problem at a place, which shows its value unless `got` is more helpful."""
    return Problem(place.path, expected, place.shown if got is None else got, hint)
