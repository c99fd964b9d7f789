"""Tests that the default run leaves out."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

from tests.left_out import LeftOut, mark_left_out
from tests.paths import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import slow_tests_page
from slow_tests_page import SlowMark, all_slow_marks, slow_marks

FILE = """
import pytest
MARKS = [pytest.mark.slow]

@pytest.mark.slow(reason="a thousand cases")
def test_many(): ...

@pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.slow(reason="larger"))])
def test_one(n): ...
"""


def test_marks_are_found_with_their_tests_and_reasons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "test_x.py"
    path.write_text(FILE)
    monkeypatch.setattr(slow_tests_page, "ROOT", tmp_path)
    assert list(slow_marks(path)) == [
        SlowMark("test_x.py", 3, "", ""),
        SlowMark("test_x.py", 5, "test_many", "a thousand cases"),
        SlowMark("test_x.py", 8, "test_one", "larger"),
    ]


def test_a_listed_test_has_a_mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tests").mkdir()
    listed = '["tests/test_x.py"]\nreason = "others run"\ntests = ["test_a[1]", "test_a[2]", "test_b"]\n'
    (tmp_path / "tests" / "left_out.toml").write_text(listed)
    (tmp_path / "tests" / "test_y.py").write_text(FILE)
    monkeypatch.setattr(slow_tests_page, "ROOT", tmp_path)
    found = [(mark.path, mark.test, mark.reason) for mark in all_slow_marks()]
    assert found[:2] == [("tests/test_x.py", "test_a", "others run"), ("tests/test_x.py", "test_b", "others run")]
    assert len(found) == 5


@dataclass
class Collected:
    """What the list looks at in a collected test."""

    nodeid: str
    reasons: list[str] = field(default_factory=list[str])

    def add_marker(self, mark: pytest.MarkDecorator) -> None:
        assert mark.name == "slow"
        self.reasons.append(mark.kwargs["reason"])


def test_listed_tests_are_slow_and_unknown_ones_an_error() -> None:
    listed = {"tests/test_x.py": LeftOut("others run", ("test_a[1]", "test_b"))}
    names = ("test_x.py::test_a[1]", "test_x.py::test_a[2]", "test_x.py::test_b[3]", "test_y.py::test_b")
    items = [Collected(f"tests/{name}") for name in names]
    mark_left_out(cast("list[pytest.Item]", items), listed, whole=True)
    assert [len(item.reasons) for item in items] == [1, 0, 1, 0]
    some = cast("list[pytest.Item]", items[1:2])
    mark_left_out(some, listed, whole=False)
    with pytest.raises(pytest.UsageError, match=r"not there: tests/test_x\.py::test_a\[1\], tests/test_x\.py::test_b"):
        mark_left_out(some, listed, whole=True)


def test_every_mark_has_a_reason() -> None:
    marks = all_slow_marks()
    assert len(marks) > 20
    assert [f"{m.path}:{m.line}" for m in marks if not m.reason] == []


def test_one_in_some_cases_stays_always_the_same() -> None:
    listed = {"tests/test_x.py": LeftOut("others run", one_in={"test_many": 4})}
    items = [Collected(f"tests/test_x.py::test_many[{n}]") for n in range(200)]
    mark_left_out(cast("list[pytest.Item]", items), listed, whole=True)
    stay = [item.nodeid for item in items if not item.reasons]
    assert 30 <= len(stay) <= 70
    alone = Collected(stay[-1])
    mark_left_out(cast("list[pytest.Item]", [alone]), listed, whole=False)
    assert alone.reasons == []
    with pytest.raises(pytest.UsageError, match=r"not there: tests/test_x\.py::test_many"):
        mark_left_out(cast("list[pytest.Item]", [Collected("tests/test_x.py::test_few")]), listed, whole=True)


def test_one_in_some_cases_may_not_be_none() -> None:
    listed = {"tests/test_x.py": LeftOut("others run", one_in={"test_many": 1000})}
    items = cast("list[pytest.Item]", [Collected(f"tests/test_x.py::test_many[{n}]") for n in range(3)])
    mark_left_out(items, listed, whole=False)
    with pytest.raises(pytest.UsageError, match=r"leaves out all cases of tests/test_x\.py::test_many: take a smaller"):
        mark_left_out(items, listed, whole=True)
