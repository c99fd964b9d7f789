"""The progress bar: steps on a terminal, nothing elsewhere."""

from __future__ import annotations

import io
import sys
from typing import Any

import pytest
import rich.progress

from spyre_mlir.cli.support.progress import progress


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
    with progress("superdsc", wanted=False) as step:
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
