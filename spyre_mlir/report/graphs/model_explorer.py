"""Graphs as Model Explorer reads them: a graph collection, with modules as nested groups.

Format: the dataclasses of `graph_builder` in the package ai-edge-model-explorer 0.1, as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spyre_mlir.backend.json_file import dump_text
from spyre_mlir.dialects.superdsc.model.json_value import Json, JsonObject
from spyre_mlir.report.graphs.colours import colour_of
from spyre_mlir.report.graphs.level_graph import SEPARATOR, LevelGraph, LevelNode


def collection_text(name: str, levels: Sequence[LevelGraph]) -> str:
    """Return the JSON text of a collection with a graph per level."""
    graphs: list[Json] = [_graph(graph) for graph in levels]
    return dump_text({"label": name, "graphs": graphs, "graphSorting": "node_count_asc"}) + "\n"


def _graph(graph: LevelGraph) -> JsonObject:
    longest = max((node.us for node in graph.nodes), default=0.0)
    types = {node.id: node.types for node in graph.nodes}
    return {
        "id": graph.level,
        "nodes": [_node(node, longest, types) for node in graph.nodes],
        "groupNodeAttributes": {_namespace(group): dict(figures) for group, figures in graph.groups.items()},
    }


def _node(node: LevelNode, longest: float, types: Mapping[str, tuple[str, ...]]) -> JsonObject:
    figures = {"kind": node.kind} | dict(node.figures)
    return {
        "id": node.id,
        "label": node.label,
        "namespace": _namespace(node.group),
        "attrs": [{"key": key, "value": value} for key, value in figures.items()],
        "incomingEdges": [
            {"sourceNodeId": maker, "sourceNodeOutputId": str(result), "targetNodeInputId": str(number)}
            for number, (maker, result) in enumerate(node.reads)
        ],
        "outputsMetadata": [_described(number, text) for number, text in enumerate(node.types)],
        "inputsMetadata": [_described(n, types[maker][result]) for n, (maker, result) in enumerate(node.reads)],
        "style": {"backgroundColor": colour_of(node, longest)},
    }


def _described(number: int, text: str) -> Json:
    return {"id": str(number), "attrs": [{"key": "tensor_shape", "value": text}]}


def _namespace(group: tuple[str, ...]) -> str:
    return SEPARATOR.join(group)
