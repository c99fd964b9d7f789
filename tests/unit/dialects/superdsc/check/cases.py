"""Example files with changes, held against single rules, and the rules as the reference page lists them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from spyre_mlir.dialects.superdsc.check.json_file import SdscJson
from spyre_mlir.dialects.superdsc.check.rule import Problem, Rule, Severity
from spyre_mlir.dialects.superdsc.codec.cursor import Cursor
from tests.paths import DATA, ROOT
from tests.unit.backend.check.cases import LX, Opened

Change = Callable[[Opened], object]
Found = list[tuple[str, ...]]

RIGHT = [*(f"superdsc_worked/{path.stem}" for path in sorted((DATA / "superdsc_worked").glob("*.json"))), LX]


def opened(file: str, *changes: Change) -> Opened:
    """An example file's value, changed."""
    value = Opened(json.loads((DATA / f"{file}.json").read_text()))
    for change in changes:
        change(value)
    return value


def sdsc(file: str, *changes: Change) -> SdscJson:
    """A changed example file as its rules see it."""
    ((root, _),) = (value := opened(file, *changes).value).items()
    return SdscJson(root, Cursor(value, "$").at(root))


def short(place: str, view: SdscJson) -> str:
    """A path below the file's object, or below its DSC."""
    names = [dsc.name for dsc in view.dscs] if isinstance(view.top.value, dict) and "dscs_" in view.top.value else []
    place = place.removeprefix(f"{view.top.path}.")
    return place.removeprefix(f"dscs_[0].{names[0]}.") if names else place


def told(problem: Problem, view: SdscJson) -> tuple[str, ...]:
    """Place, what should stand there, what stands there and, if there is one, the hint."""
    text = (short(problem.path, view), problem.expected, problem.got)
    return text if problem.hint is None else (*text, problem.hint)


def found(rule: Rule[SdscJson], file: str, *changes: Change) -> Found:
    """What one rule says about a changed file."""
    view = sdsc(file, *changes)
    return [told(one, view) for one in rule.find(view)]


def update(place: Callable[[Opened], Any], **members: Any) -> Change:
    """The change that sets members."""
    return lambda value: place(value).update(members)


def starts(number: int, address: Callable[[int], int]) -> Change:
    """The change that gives every core another start address of an operand."""

    def change(value: Opened) -> None:
        data = value.start(number)
        data.update({key: str(address(core)) for core, key in enumerate(data)})

    return change


def symbolic(number: int) -> Change:
    """The change that makes an operand's addresses ids."""
    return lambda value: value.node(number).update(isStartAddrSymbolic_=1)


def published() -> list[tuple[str, Severity, str, str, str]]:
    """Name, severity, meaning, certainty and source of every rule of the reference page, in its order."""
    rules: list[tuple[str, Severity, str, str, str]] = []
    severity = Severity.ERROR
    for line in (ROOT / "docs/reference/checks.md").read_text().splitlines():
        if line == "## Warnings":
            severity = Severity.WARNING
        if line.startswith("| `"):
            name, meaning, certainty, source = line.strip("| ").split(" | ")
            rules.append((name.strip("`"), severity, meaning, certainty, source))
    return rules


def assert_as_published(rules: Iterable[Rule[SdscJson]], names: str) -> None:
    """The rules are those named, in that order, and say of themselves what the reference page says of them."""
    page = {row[0]: row for row in published()}
    declared = [(rule.name, rule.severity, rule.meaning, rule.certainty, rule.source) for rule in rules]
    assert declared == [page[name] for name in names.split()]


def assert_right_files_keep(rules: Iterable[Rule[SdscJson]]) -> None:
    """No example file breaks any of the rules."""
    views = {file: sdsc(file) for file in RIGHT}
    wrong = {(file, rule.name) for rule in rules for file, view in views.items() if list(rule.find(view))}
    assert wrong - {(LX, "research-key")} == set()
