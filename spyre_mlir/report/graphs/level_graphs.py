"""The graph of a program at every level."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from spyre_mlir.backend.whole_files.whole_file import save_text
from spyre_mlir.errors import InputError
from spyre_mlir.report.graphs.dot import dot_text
from spyre_mlir.report.graphs.level_graph import LevelGraph
from spyre_mlir.report.graphs.model_explorer import collection_text
from spyre_mlir.sizes import counted
from spyre_mlir.text.notebook import ShownAsText

EXPLORER_FILE = "model-explorer.json"


@dataclass(frozen=True, repr=False)
class LevelGraphs(ShownAsText):
    """The graph of a program at every level.

    Attributes:
        name: of the program.
        levels: from the aten level down.
    """

    name: str
    levels: tuple[LevelGraph, ...]

    def __str__(self) -> str:
        """One line per level."""
        sizes = (
            f"  {g.level}: {counted(len(g.nodes), 'node')}, {counted(len(g.groups), 'group')}" for g in self.levels
        )
        return "\n".join([f"graphs of {self.name}", *sizes])

    def at(self, level: str) -> LevelGraph:
        """Return the graph of a level.

        Raises:
            InputError: there is no such level.
        """
        found = {graph.level: graph for graph in self.levels}
        if level not in found:
            raise InputError(f"no level is called '{level}'", hint=f"the levels are {', '.join(found)}")
        return found[level]

    def model_explorer(self) -> str:
        """All levels as the JSON text of a graph collection, as Model Explorer reads it."""
        return collection_text(self.name, self.levels)

    def dot(self, level: str = "aten") -> str:
        """One level in the language of Graphviz, a cluster per module.

        Raises:
            InputError: there is no such level.
        """
        return dot_text(self.name, self.at(level))

    def save(self, directory: str | Path) -> Path:
        """Write ``model-explorer.json`` and ``LEVEL.dot`` for every level.

        Nodes of a picture that ``dot -Tsvg -O`` draws lead to their counterparts at the level below.

        Args:
            directory: made if it is not there; files of these names are replaced.

        Raises:
            InputError: a file cannot be written.
        """
        folder = Path(directory)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot make the directory: {error.strerror}", where=str(folder)) from error
        save_text(folder / EXPLORER_FILE, self.model_explorer())
        for graph, below in zip(self.levels, (*self.levels[1:], None), strict=True):
            save_text(folder / f"{graph.level}.dot", dot_text(self.name, graph, below))
        return folder
