"""Tables as plain text, in a pipe and on terminals of several widths."""

from __future__ import annotations

import os
import sys
from typing import Any

import pytest

from spyre_mlir.report.tables import WIDTH, listing

COLUMNS: Any = {"name": "left", "value": "right", "remark": "left"}
ROWS = [("[red]one", "1", "x" * 20), ("two", "22", "")]


def test_a_table_is_plain_text_without_blanks_behind_its_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    lines = listing("Title", COLUMNS, ROWS).splitlines()
    assert lines[0] == "Title"
    assert [line.split() for line in lines if "two" in line] == [["two", "22"]]
    assert all(line == line.rstrip() and "\x1b" not in line for line in lines)


def test_without_a_title_the_heading_is_first() -> None:
    assert listing("", COLUMNS, ROWS).splitlines()[0].split() == ["name", "value", "remark"]


def test_a_table_is_text_in_a_notebook_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """There rich would show it beside the text, and leave the text empty."""
    plain = listing("Title", COLUMNS, ROWS)
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert plain
    assert listing("Title", COLUMNS, ROWS) == plain


def test_columns_that_can_be_spared_go_first_where_there_is_no_room() -> None:
    text = listing("Title", COLUMNS, ROWS, ("value", "remark"), width=43)
    assert "value" in text and "x" * 20 in text and "no room" not in text
    without_value = listing("Title", COLUMNS, ROWS, ("value", "remark"), width=42)
    assert "x" * 20 in without_value and without_value.splitlines()[-1] == "no room for value"
    narrow = listing("Title", COLUMNS, ROWS, ("value", "remark"), width=16)
    assert narrow.splitlines()[-1] == "no room for value, remark"
    assert max(map(len, listing("Title", COLUMNS, ROWS, width=12).splitlines())) <= 12


def test_text_of_a_folded_column_goes_on_in_the_next_line_before_columns_are_left_out() -> None:
    rows = [("one", "1", "its kernels see the same slices")]
    lines = listing("", COLUMNS, rows, ("value",), width=33, folded={"remark": 12}).splitlines()
    assert max(map(len, lines)) <= 33
    assert " ".join(" ".join(lines[2:]).split()) == "one 1 its kernels see the same slices"
    narrow = listing("", COLUMNS, rows, ("value",), width=24, folded={"remark": 12})
    assert narrow.splitlines()[-1] == "no room for value" and "…" not in narrow
    wide = listing("", COLUMNS, rows, ("value",), width=80, folded={"remark": 12})
    assert "its kernels see the same slices" in wide, "nothing is folded where there is room"


@pytest.mark.parametrize(("looked_at", "columns", "room"), [(False, 30, WIDTH), (True, 30, 30), (True, 500, WIDTH)])
def test_the_width_is_that_of_the_terminal_if_somebody_looks(
    looked_at: bool, columns: int, room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: looked_at, raising=False)
    monkeypatch.setattr("shutil.get_terminal_size", lambda *_, **__: os.terminal_size((columns, 24)))
    lines = listing("Title", {"a": "left"}, [("x" * 200,)]).splitlines()
    assert max(map(len, lines)) <= room
    assert len(lines[-1]) > room - 5
