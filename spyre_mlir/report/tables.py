"""Tables as plain text: whole in a pipe or a file, and without their spare columns on a terminal that is too narrow."""

from __future__ import annotations

import io
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

WIDTH = 140


def listing(
    title: str,
    columns: Mapping[str, JustifyMethod],
    rows: Iterable[Sequence[str]],
    spare: Sequence[str] = (),
    width: int | None = None,
    folded: Mapping[str, int] | None = None,
) -> str:
    """Render rows under a title, without lines around them and without blanks behind them.

    Args:
        title: a line above; none if empty.
        columns: heading and side of each.
        rows: cells, one per column.
        spare: columns that are left out where there is no room for them, the first one first.
        width: of the text, in characters; that of the terminal if somebody looks, else `WIDTH`.
        folded: columns whose text goes on in a next line before others are left out, with the least width of each.
    """
    room, names, cells = _room() if width is None else width, list(columns), [list(row) for row in rows]
    least = folded or {}
    dropped: list[str] = []
    while (
        _width(names, cells, least) > room and (name := next((one for one in spare if one in names), None)) is not None
    ):
        place = names.index(name)
        names.pop(place)
        cells = [[cell for n, cell in enumerate(row) if n != place] for row in cells]
        dropped.append(name)
    table = Table(title=Text(title), title_justify="left", box=SIMPLE_HEAD)
    for name in names:
        table.add_column(
            name, justify=columns[name], no_wrap=name not in least, overflow="fold" if name in least else "ellipsis"
        )
    for row in cells:
        table.add_row(*map(Text, row))
    lines = [line.rstrip() for line in _rendered(table, room).splitlines()]
    first = 0 if title else next(n for n, line in enumerate(lines) if line)
    left_out = [f"no room for {', '.join(dropped)}"] if dropped else []
    return "\n".join([*lines[first:], *left_out])


def _room() -> int:
    return min(WIDTH, shutil.get_terminal_size().columns) if sys.stdout.isatty() else WIDTH


def _width(names: Sequence[str], rows: Sequence[Sequence[str]], least: Mapping[str, int]) -> int:
    """Characters that the longest line needs: a column has three blanks beside it, and the line one before them."""
    return 1 + sum(_needed(column, least.get(column[0])) + 3 for column in zip(names, *rows, strict=True))


def _needed(column: Sequence[str], least: int | None) -> int:
    longest = max(map(len, column))
    return longest if least is None else min(longest, max(least, len(column[0])))


def _rendered(table: Table, width: int) -> str:
    stream = io.StringIO()
    Console(file=stream, width=width, force_terminal=False, color_system=None, force_jupyter=False).print(table)
    return stream.getvalue().rstrip()
