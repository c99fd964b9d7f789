"""The JSON is a graph collection for the loader of Model Explorer itself."""

from __future__ import annotations

import json

import pytest

from spyre_mlir.pipeline import LEVELS
from spyre_mlir.report.graphs import LevelGraphs


def test_namespaces_edges_and_figures(graphs: LevelGraphs) -> None:
    found = json.loads(graphs.model_explorer())
    assert [graph["id"] for graph in found["graphs"]] == list(LEVELS)
    aten, *_, superdsc = ({node["id"]: node for node in graph["nodes"]} for graph in found["graphs"])
    relu = aten["layers/0/aten.relu"]
    assert (relu["label"], relu["namespace"]) == ("relu", "layers/0")
    assert relu["incomingEdges"] == [
        {"sourceNodeId": "layers/0/up/aten.linear", "sourceNodeOutputId": "0", "targetNodeInputId": "0"}
    ]
    attributes = {entry["key"]: entry["value"] for entry in superdsc["layers/0/aten.relu"]["attrs"]}
    assert attributes["file"].startswith("sdsc_") and float(attributes["time, us"]) > 0
    groups = found["graphs"][0]["groupNodeAttributes"]
    assert set(groups) >= {"", "layers", "layers/0", "layers/0/up", "norm"}
    assert groups[""]["part of the time"] == "100.0%"


def test_the_loader_of_model_explorer_takes_it(graphs: LevelGraphs) -> None:
    builder = pytest.importorskip("model_explorer.graph_builder", reason="pip install ai-edge-model-explorer")
    dacite = pytest.importorskip("dacite")
    value = json.loads(graphs.model_explorer())
    read = dacite.from_dict(builder.GraphCollection, value, dacite.Config(strict=True))
    assert [(g.id, len(g.nodes)) for g in read.graphs] == [(g.level, len(g.nodes)) for g in graphs.levels]
    value["graphs"][0]["nodes"][0]["color"] = "red"
    with pytest.raises(dacite.UnexpectedDataError):
        dacite.from_dict(builder.GraphCollection, value, dacite.Config(strict=True))
