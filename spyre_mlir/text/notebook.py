"""Objects in notebooks: what prints itself as text is shown as that text."""

from __future__ import annotations

from html import escape


class ShownAsText:
    """Base of objects that a notebook shows as they print, in columns and without folding lines."""

    def _repr_html_(self) -> str:
        return f'<pre style="white-space: pre; overflow-x: auto; line-height: 1.2">{escape(str(self))}</pre>'
