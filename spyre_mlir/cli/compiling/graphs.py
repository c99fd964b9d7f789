"""`spyre-compile --emit model-explorer` and `--emit dot`: the graph of a program at its levels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spyre_mlir.errors import InputError

if TYPE_CHECKING:
    from spyre_mlir.frontend import Program
    from spyre_mlir.options import CompileOptions
    from spyre_mlir.pipeline import PassWatcher

EXPLORER, DOT, PYTHON = "model-explorer", "dot", "python"


def wanted(emit: str) -> bool:
    """Return whether graphs are to be printed, not the text of a level."""
    return emit.partition(":")[0] in (EXPLORER, DOT)


def check(emit: str) -> None:
    """Check what `--emit` is to print, a level or graphs.

    Raises:
        InputError: it is neither.
    """
    from spyre_mlir.pipeline import LEVELS

    form, colon, level = emit.partition(":")
    if colon and form == EXPLORER:
        raise InputError("Model Explorer takes all levels together", where=f"--emit {emit}", hint=f"--emit {EXPLORER}")
    named = level if form == DOT and colon else LEVELS[0] if form in (EXPLORER, DOT) else emit
    if named not in (*LEVELS, PYTHON) or (form == DOT and named == PYTHON):
        raise InputError(
            f"no level is called '{named}'",
            hint=f"the levels are {', '.join(LEVELS)}; graphs: {EXPLORER}, {DOT}:LEVEL; host code: {PYTHON}",
        )


def graph_text(emit: str, program: Program, options: CompileOptions, watch: PassWatcher) -> str:
    """Lower a program, and return the text of its graphs.

    Args:
        emit: `model-explorer`, `dot` for the aten level, or `dot:LEVEL`.
        program: of fixed sizes.
        options: of the compilation.
        watch: is told of every pass.
    """
    from spyre_mlir.pipeline import LEVELS
    from spyre_mlir.report.graphs.building import graphs_of

    graphs = graphs_of(program.name, program.module, options, watch)
    form, _, level = emit.partition(":")
    return graphs.model_explorer() if form == EXPLORER else graphs.dot(level or LEVELS[0])
