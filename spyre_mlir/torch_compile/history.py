"""History of compilations: the captured graphs, and the programs made from each with the reason."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from weakref import ReferenceType

from rich.console import Console
from rich.table import Table

from spyre_mlir.compiled import CompiledModel
from spyre_mlir.parted.model import PartedModel

log = logging.getLogger(__name__)


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
        cached: whether the lowered program came from the cache on disk.
        made: the program, or the model in parts; see `program` and `programs`.
        capture: the number of the capture.
    """

    graph: str
    function: str
    reason: str
    inputs: str
    kernels: int
    seconds: float
    cached: bool = False
    made: ReferenceType[CompiledModel] | ReferenceType[PartedModel] | None = field(
        default=None, repr=False, compare=False
    )
    capture: int = field(default=0, repr=False, compare=False)

    @property
    def program(self) -> CompiledModel | None:
        """The program, with its report, trace, accuracy and text.

        None if the host runs it, torch has dropped it, or data divides it into the parts that `programs` has.
        """
        made = None if self.made is None else self.made()
        return made if isinstance(made, CompiledModel) else None

    @property
    def programs(self) -> tuple[CompiledModel, ...]:
        """The program; where data divides the graph, those of its parts for the sizes of the last calls."""
        made = None if self.made is None else self.made()
        if made is None:
            return ()
        return made.programs if isinstance(made, PartedModel) else (made,)

    def summary(self) -> str:
        """Return the compilation as one line for a log."""
        source = ", lowered before" if self.cached else ""
        cost = f"{self.kernels} kernels, {self.seconds:.3f} s{source}"
        return f"graph {self.graph} of {self.function} for {self.inputs}: {cost}; why: {self.reason}"


_compilations: list[Compilation] = []
_numbers = count(1)
_latest: dict[str, int] = {}  # the capture that a name of Dynamo stands for now


@dataclass(frozen=True)
class Capture:
    """The names of a captured graph.

    Attributes:
        graph: Dynamo's, frame and number of its compilation, e.g. ``0/1``.
        number: of the capture in this process; Dynamo gives names again after a reset.
        function: the function whose code was captured.
    """

    graph: str
    number: int
    function: str

    @staticmethod
    def new(graph: str, function: str) -> Capture:
        """Number a capture, which takes over Dynamo's name from an earlier one."""
        number = _latest[graph] = next(_numbers)
        return Capture(graph, number, function)


def record(compilation: Compilation) -> None:
    """Append a compilation to the history of the process."""
    _compilations.append(compilation)
    log.info("%s", compilation.summary())


def compilations() -> Sequence[Compilation]:
    """Return every program compiled in this process, or since `forget`."""
    return tuple(_compilations)


def programs(function: Callable[..., Any] | None = None) -> list[CompiledModel]:
    """Return the programs of a compiled function or module, one per graph and size of inputs, in order of compilation.

    A graph in which data decides sizes has programs for each of its parts; those for sizes of long ago are dropped.

    Args:
        function: what ``torch.compile`` gave, or the function or module that it was given; None for all functions.
            Modules of torch itself, such as `nn.Sequential`, share their programs.
    """
    kept: Sequence[Compilation] = _compilations
    if function is not None:
        from spyre_mlir.torch_compile.dynamo_private import compile_ids

        known = compile_ids(function)
        kept = [c for c in kept if c.graph in known and c.capture == _latest.get(c.graph)]
    return [program for c in kept for program in c.programs]


def forget() -> None:
    """Clear the history."""
    _compilations.clear()


def explain() -> Table:
    """Return the history as a table for a terminal: `rich.print(explain())`."""
    table = Table("graph", "function", "why it was compiled", "inputs", "kernels", "seconds", "cache")
    for c in _compilations:
        table.add_row(
            c.graph, c.function, c.reason, c.inputs, str(c.kernels), f"{c.seconds:.2f}", "hit" if c.cached else ""
        )
    return table


def print_history() -> None:
    """Print the history as a table on stderr."""
    Console(stderr=True).print(explain())
