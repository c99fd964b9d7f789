"""Tables as plain text, identical on every terminal."""

from __future__ import annotations

import io

from rich.console import Console
from rich.table import Table

WIDTH = 100


def rendered(table: Table, width: int = WIDTH) -> str:
    """Render a table as plain text."""
    stream = io.StringIO()
    Console(file=stream, width=width, force_terminal=False, color_system=None).print(table)
    return stream.getvalue().rstrip()
