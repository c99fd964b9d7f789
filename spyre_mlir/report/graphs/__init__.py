"""The graph of a program at every level, for Model Explorer and Graphviz; equal ids and groups link the levels."""

from __future__ import annotations

from spyre_mlir.report.graphs.level_graph import LevelGraph as LevelGraph
from spyre_mlir.report.graphs.level_graph import LevelNode as LevelNode
from spyre_mlir.report.graphs.level_graphs import LevelGraphs as LevelGraphs
