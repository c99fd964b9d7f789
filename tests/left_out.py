"""Tests that the default run leaves out, as `left_out.toml` lists them: they are marked `slow` when they are collected.

The list is of the run, not of the tests: a case is left out because another case of its test, or another test of the
same behaviour, runs by default and takes less time.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.paths import ROOT

LIST = ROOT / "tests" / "left_out.toml"


@dataclass(frozen=True)
class LeftOut:
    """Tests of one file.

    Attributes:
        reason: why the default run leaves them out.
        tests: their names, with the case in brackets where only that case is left out.
        one_in: tests of many cases of which one in so many stays, by name: always the same ones, chosen by digest.
    """

    reason: str
    tests: tuple[str, ...] = ()
    one_in: Mapping[str, int] = field(default_factory=dict[str, int])

    def names_for(self, name: str) -> set[str]:
        """Names in the list because of which a test is left out, none if it stays.

        Args:
            name: of the test, with its case in brackets.
        """
        test = name.partition("[")[0]
        leaves = int(hashlib.sha256(name.encode()).hexdigest(), 16) % self.one_in.get(test, 1) != 0
        return {name, test} & {*self.tests, *([test] if leaves else [])}


def read_list(path: Path = LIST) -> dict[str, LeftOut]:
    """What is left out, by file; paths are relative to the root."""
    rows = tomllib.loads(path.read_text(encoding="utf-8"))
    return {
        name: LeftOut(row["reason"], tuple(row.get("tests", ())), row.get("one_in", {})) for name, row in rows.items()
    }


def mark_left_out(items: Iterable[pytest.Item], listed: Mapping[str, LeftOut], *, whole: bool) -> None:
    """Mark listed tests `slow`.

    Args:
        items: collected tests.
        listed: what is left out, by file.
        whole: whether all tests of a collected file are among the items.

    Raises:
        pytest.UsageError: the list names a test that its file does not have, or leaves no case of a test of which one
            in so many is to stay.
    """
    missing = {name: {*row.tests, *row.one_in} for name, row in listed.items()}
    without = {(name, test) for name, row in listed.items() for test in row.one_in}
    collected = set[str]()
    for item in items:
        file, _, name = item.nodeid.partition("::")
        collected.add(file)
        if (row := listed.get(file)) is not None:
            if found := row.names_for(name):
                item.add_marker(pytest.mark.slow(reason=row.reason))
            else:
                without.discard((file, name.partition("[")[0]))
            missing[file] -= {*found, name.partition("[")[0]} & {*found, *row.one_in}
    wrong = [f"{file}::{name}" for file in sorted(collected) for name in sorted(missing.get(file, ()))]
    if whole and wrong:
        raise pytest.UsageError(f"{LIST.name} names tests that are not there: {', '.join(wrong)}")
    none = [f"{file}::{test}" for file, test in sorted(without) if file in collected]
    if whole and none:
        raise pytest.UsageError(f"{LIST.name} leaves out all cases of {', '.join(none)}: take a smaller number")
