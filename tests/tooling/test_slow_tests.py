"""Tests that the default run leaves out."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

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


def test_every_mark_has_a_reason() -> None:
    marks = all_slow_marks()
    assert len(marks) > 20
    assert [f"{m.path}:{m.line}" for m in marks if not m.reason] == []
