"""Tables as plain text, identical on every terminal."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console, JustifyMethod
from rich.table import Table

WIDTH = 100


def rendered(table: Table, width: int = WIDTH) -> str:
    """Render a table as plain text."""
    stream = io.StringIO()
    Console(file=stream, width=width, force_terminal=False, color_system=None, force_jupyter=False).print(table)
    return stream.getvalue().rstrip()


def listing(title: str, columns: Mapping[str, JustifyMethod], rows: Iterable[Sequence[str]], width: int = WIDTH) -> str:
    """Render rows under a title, without lines around them and without blanks behind them."""
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
    for name, justify in columns.items():
        table.add_column(name, justify=justify, no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return "\n".join(line.rstrip() for line in rendered(table, width).splitlines())
