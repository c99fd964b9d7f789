"""Progress bar on a terminal's stderr; silent elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager


@contextmanager
def progress(level: str, *, wanted: bool = True) -> Generator[Callable[[str], None]]:
    """Return a function called at the start of each step: the import, every pass to `level`, the writing.

    Args:
        level: the last level that is made.
        wanted: whether to show a bar at all; log lines would tear it.
    """
    if not wanted or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from spyre_mlir.pipeline import passes_to

    steps = len([name for name in passes_to(level).split(",") if name]) + 2
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as bar:
        task = bar.add_task("start", total=steps)

        def step(name: str) -> None:
            bar.update(task, description=name, advance=1)

        yield step
