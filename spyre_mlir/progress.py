"""Progress of a compilation and its log lines: a bar on a terminal's stderr, lines elsewhere if asked for, or calls."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.choices import Progress

log = logging.getLogger(__name__)

Step = Callable[[str], object]


@contextmanager
def progress(level: str, shown: Progress = None) -> Generator[Step]:
    """Return a function called at the start of each step: the import, every pass to `level`, the writing.

    Args:
        level: the last level that is made.
        shown: None for a bar on a terminal and silence elsewhere; True for lines there; False for silence; or a
            function that is given the name of every step.
    """
    if callable(shown):
        yield shown
    elif shown is False:
        yield lambda _: None
    elif sys.stderr.isatty():
        with _bar(level) as step:
            yield step
    else:
        yield _line if shown else lambda _: None


def _line(step: str) -> None:
    sys.stderr.write(f"spyre-mlir: {step}\n")


@contextmanager
def _bar(level: str) -> Generator[Step]:
    import rich.progress
    from rich.console import Console

    from spyre_mlir.pipeline import passes_to

    steps = len([name for name in passes_to(level).split(",") if name]) + 2
    columns = (
        rich.progress.TextColumn("{task.description}"),
        rich.progress.BarColumn(),
        rich.progress.TimeElapsedColumn(),
    )
    with rich.progress.Progress(*columns, console=Console(file=sys.stderr), transient=True) as bar:
        task = bar.add_task("start", total=steps)

        def step(name: str) -> None:
            bar.update(task, description=name, advance=1)

        yield step


class PassLog:
    """Observer of a module through the passes: a log line for each, and a step of the progress.

    Args:
        step: is told the name of every pass that begins.
    """

    def __init__(self, step: Step | None = None) -> None:
        self._step = step
        self._started = time.perf_counter()

    def before(self, name: str, module: ModuleOp) -> None:  # noqa: ARG002 - for observers that keep the module
        """Start the clock of a pass that is about to change a module."""
        log.debug("%s begins", name)
        if self._step is not None:
            self._step(name)
        self._started = time.perf_counter()

    def after(self, name: str, module: ModuleOp) -> float:
        """Report a pass that has run; return the seconds it took."""
        seconds = time.perf_counter() - self._started
        if log.isEnabledFor(logging.INFO):
            log.info("%s: %d ops, %.3f s", name, sum(1 for _ in module.walk()), seconds)
        return seconds
