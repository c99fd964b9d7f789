"""Objects in notebooks and at a prompt: what prints itself as text is shown as that text."""

from __future__ import annotations

from html import escape


class ShownAsText:
    """Base of objects that a notebook shows as they print, in columns and without folding lines.

    A prompt of Python shows them so, too. Every such class has a `__str__`, or a `__repr__` of one line.
    """

    def __repr__(self) -> str:
        """The text."""
        return str(self)

    def _repr_html_(self) -> str:
        return f'<pre style="white-space: pre; overflow-x: auto; line-height: 1.2">{escape(str(self))}</pre>'
