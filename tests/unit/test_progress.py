"""Progress and log lines: steps on a terminal, nothing elsewhere unless it is asked for."""

from __future__ import annotations

import io
import logging
import sys
from typing import Any

import pytest
import rich.progress
from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.progress import PassLog, progress
from spyre_mlir.text.render import parse_module
from spyre_mlir.universe import make_context

RICH = rich.progress.Progress


class Terminal(io.StringIO):
    """A stream that someone looks at."""

    def isatty(self) -> bool:
        return True


class Bar:
    """Keeps what it is told."""

    told: list[Any]

    def __init__(self, *columns: object, console: Any, transient: bool) -> None:
        text, *others = columns
        assert isinstance(text, rich.progress.TextColumn)
        assert text.text_format == "{task.description}"
        assert [type(other) for other in others] == [rich.progress.BarColumn, rich.progress.TimeElapsedColumn]
        assert console.file is sys.stderr
        Bar.told = [transient]

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: object) -> None:
        Bar.told.append("end")

    def add_task(self, description: str, total: int) -> int:
        Bar.told.append((description, total))
        return 7

    def update(self, task: int, description: str, advance: int) -> None:
        Bar.told.append((task, description, advance))


@pytest.fixture(autouse=True)
def bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rich.progress, "Progress", Bar)
    Bar.told = []


def test_nothing_is_shown_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("superdsc") as step:
        step("import")
    assert Bar.told == []
    assert capsys.readouterr() == ("", "")


def test_nothing_is_shown_where_it_is_not_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    with progress("superdsc", False) as step:
        step("import")
    assert Bar.told == []
    assert sys.stderr.getvalue() == ""


@pytest.mark.parametrize(("passes", "total"), [("", 2), ("one", 3), ("one,two,three", 5)])
def test_a_bar_has_a_step_for_every_pass_the_import_and_the_writing(
    passes: str, total: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr("spyre_mlir.pipeline.passes_to", {"a-level": passes}.__getitem__)
    with progress("a-level") as step:
        step("import")
        step("one")
    assert Bar.told == [True, ("start", total), (7, "import", 1), (7, "one", 1), "end"]


@pytest.mark.parametrize("terminal", [True, False])
def test_a_function_is_told_every_step(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    if terminal:
        monkeypatch.setattr(sys, "stderr", Terminal())
    with progress("superdsc", steps.append) as step:
        step("import")
        step("one")
    assert (steps, Bar.told) == (["import", "one"], [])


def test_lines_are_written_where_no_bar_can_be(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("superdsc", True) as step:
        step("import")
    assert Bar.told == []
    assert capsys.readouterr() == ("", "spyre-mlir: import\n")


def test_lines_that_are_wanted_are_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr("spyre_mlir.pipeline.passes_to", {"a-level": "one"}.__getitem__)
    with progress("a-level", True) as step:
        step("import")
    assert Bar.told == [True, ("start", 3), (7, "import", 1), "end"]


def test_a_pass_is_a_step_and_a_line(caplog: pytest.LogCaptureFixture) -> None:
    steps: list[str] = []
    module = parse_module("func.func @main() {\n func.return\n}", make_context())
    with caplog.at_level(logging.DEBUG, "spyre_mlir.progress"):
        watch = PassLog(steps.append)
        watch.before("a-pass", ModuleOp([]))
        assert watch.after("a-pass", module) >= 0
    assert steps == ["a-pass"]
    begins, ends = (record.getMessage() for record in caplog.records)
    assert begins == "a-pass begins"
    assert ends.startswith("a-pass: 3 ops, ")


def test_ops_are_not_counted_for_a_log_that_nobody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    class Untouchable:
        pass

    monkeypatch.setattr(logging.getLogger("spyre_mlir.progress"), "level", logging.WARNING)
    untouchable: Any = Untouchable()
    assert PassLog().after("a-pass", untouchable) >= 0


def test_the_bar_names_the_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rich.progress, "Progress", RICH)
    monkeypatch.setattr(sys, "stderr", screen := Terminal())
    with progress("superdsc") as step:
        step("divide-work")
    assert "divide-work" in screen.getvalue()
