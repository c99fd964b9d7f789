"""Longer times are redder; what takes none has the colour of its kind."""

from __future__ import annotations

from spyre_mlir.report.graphs.colours import colour_of
from spyre_mlir.report.graphs.level_graph import LevelNode
from spyre_mlir.report.models.graph import COLOURS


def test_times_and_kinds() -> None:
    assert colour_of(LevelNode("a", "a", (), "native", us=2.0), 2.0) == "#f06e50"
    assert colour_of(LevelNode("a", "a", (), "native", us=1.0), 2.0) == "#f8b6a8"
    assert colour_of(LevelNode("a", "a", (), "native"), 2.0) == "#ffffff"
    assert colour_of(LevelNode("a", "a", (), "host"), 0.0) == COLOURS["host"]
