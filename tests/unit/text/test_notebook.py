"""Text in a notebook."""

from __future__ import annotations

from dataclasses import dataclass

from spyre_mlir.text.notebook import ShownAsText


@dataclass(frozen=True)
class Facts(ShownAsText):
    """A table."""

    rows: str

    def __str__(self) -> str:
        return self.rows


def test_markup_is_text_and_lines_stay() -> None:
    html = Facts("a <b>\n  c & d")._repr_html_()
    assert "a &lt;b&gt;\n  c &amp; d</pre>" in html
