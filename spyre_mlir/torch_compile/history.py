"""History of compilations: the captured graphs, and the programs made from each with the reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table


@dataclass(frozen=True)
class Compilation:
    """One program.

    Attributes:
        graph: Dynamo's name of the graph, frame and number of its compilation, e.g. ``0/1``.
        function: the function whose code was captured.
        reason: why this program was needed.
        inputs: the inputs it was made for.
        kernels: its launches of hardware functions.
        seconds: what compiling took.
    """

    graph: str
    function: str
    reason: str
    inputs: str
    kernels: int
    seconds: float


_compilations: list[Compilation] = []


def record(compilation: Compilation) -> None:
    """Append a compilation to the history of the process."""
    _compilations.append(compilation)


def compilations() -> Sequence[Compilation]:
    """Return every program compiled in this process, or since `forget`."""
    return tuple(_compilations)


def forget() -> None:
    """Clear the history."""
    _compilations.clear()


def explain() -> Table:
    """Return the history as a table for a terminal: `rich.print(explain())`."""
    table = Table("graph", "function", "why it was compiled", "inputs", "kernels", "seconds")
    for c in _compilations:
        table.add_row(c.graph, c.function, c.reason, c.inputs, str(c.kernels), f"{c.seconds:.2f}")
    return table
