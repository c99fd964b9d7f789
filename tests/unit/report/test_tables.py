"""Tables as plain text."""

from __future__ import annotations

import pytest
from rich.table import Table

from spyre_mlir.report.tables import WIDTH, rendered


def table() -> Table:
    made = Table("name", "value", title="[bold]Title", width=None)
    made.add_row("[red]one", "1")
    return made


def test_a_table_is_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    text = rendered(table())
    assert "\x1b" not in text
    assert "name" in text and "one" in text
    assert text == text.rstrip()


def test_a_table_is_text_in_a_notebook_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """There rich would show it beside the text, and leave the text empty."""
    plain = rendered(table())
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert plain
    assert rendered(table()) == plain


def test_a_table_is_at_most_as_wide_as_asked() -> None:
    wide = Table("a")
    wide.add_row("x " * 200)
    assert max(map(len, rendered(wide).splitlines())) == WIDTH == 100
    assert max(map(len, rendered(wide, 40).splitlines())) == 40
