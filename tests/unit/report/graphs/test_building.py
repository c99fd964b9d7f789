"""What leads from an op back to the operation it was made for, and the figures that follow."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from torch import nn

import spyre_mlir
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.pipeline import LEVELS
from spyre_mlir.report.graphs import LevelGraphs
from spyre_mlir.report.graphs.level_graph import LevelNode
from tests.unit.report.graphs.conftest import Block


def by_id(graphs: LevelGraphs, level: str) -> dict[str, LevelNode]:
    return {node.id: node for node in graphs.at(level).nodes}


def test_operations_have_the_module_that_they_are_in(graphs: LevelGraphs) -> None:
    assert [(n.id, n.group) for n in graphs.at("aten").nodes if n.group[:2] == ("layers", "1")] == [
        ("layers/1/up/aten.linear", ("layers", "1", "up")),
        ("layers/1/aten.relu", ("layers", "1")),
        ("layers/1/down/aten.linear", ("layers", "1", "down")),
        ("layers/1/aten.add.Tensor", ("layers", "1")),
    ]


def test_calls_of_one_module_are_told_apart(graphs: LevelGraphs) -> None:
    named = [n for n in graphs.at("aten").nodes if n.group == ("norm",)]
    assert [n.id for n in named] == ["norm/aten.layer_norm", "norm/aten.layer_norm_1"]
    for node in named:
        below = [n for n in graphs.at("spyre.kernel").nodes if n.figures.get("aten operation") == node.id]
        assert str(len(below)) == node.figures["kernels"] and len(below) > 3
        assert sum(n.us for n in below) == pytest.approx(node.us)


def test_every_time_of_the_report_is_in_the_graph_once(net: CompiledModel, graphs: LevelGraphs) -> None:
    timeline = net.timeline()
    for level in ("aten", "spyre.kernel", "superdsc"):
        assert sum(n.us for n in graphs.at(level).nodes) == pytest.approx(timeline.kernels_us)
    wanted = Counter(k.launch.module for k in timeline.kernels)
    assert graphs.at("aten").groups[()]["kernels"] == str(len(timeline.kernels))
    for module in ("layers.0.up", "layers.1.down", "norm"):
        assert graphs.at("superdsc").groups[tuple(module.split("."))]["kernels"] == str(wanted[module])


def test_an_operation_and_the_last_op_made_for_it_have_one_id(graphs: LevelGraphs) -> None:
    for level in LEVELS[1:]:
        nodes = by_id(graphs, level)
        assert nodes["layers/0/up/aten.linear"].group == ("layers", "0", "up", "aten.linear")
        assert nodes["layers/0/aten.relu"].group == ("layers", "0")  # one op is no group
        assert nodes["layers/0/aten.relu"].reads == (("layers/0/up/aten.linear", 0),)
    assert by_id(graphs, "spyre.kernel")["layers/0/up/aten.linear"].label == "add"  # of the bias


def test_edges_lead_to_nodes_before_and_say_which_result(graphs: LevelGraphs) -> None:
    for graph in graphs.levels:
        seen: dict[str, LevelNode] = {}
        for node in graph.nodes:
            assert all(result < len(seen[maker].types) for maker, result in node.reads), node
            assert node.id not in seen
            seen[node.id] = node
    aten = by_id(graphs, "aten")
    largest = aten["aten.max.dim"]
    assert largest.types == ("64x1xf32", "64x1xi64")
    assert aten["aten._to_copy"].reads == ((largest.id, 1),)
    assert aten["aten.mul.Tensor_1"].reads == ((largest.id, 0), ("aten._to_copy", 0))


def test_host_steps_are_marked_at_every_level(graphs: LevelGraphs) -> None:
    for graph in graphs.levels:
        (node,) = (n for n in graph.nodes if n.kind == "host")
        assert "special_bessel_j1" in node.label
    assert "op table" in by_id(graphs, "spyre.loop")["aten.special_bessel_j1"].figures["on the host because"]


def test_weights_are_named_by_what_reads_them(graphs: LevelGraphs) -> None:
    assert by_id(graphs, "aten")["layers/0/up/aten.linear"].figures["reads"] == ("layers.0.up.weight, layers.0.up.bias")
    assert by_id(graphs, "superdsc")["layers/0/up/aten.linear"].figures["reads"] == "layers.0.up.bias"


class Layers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Sequential(*(Block() for _ in range(6))) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x) * 0.5
        return x


def test_ops_of_a_region_belong_to_the_layer_of_the_call() -> None:
    model = spyre_mlir.compile(Layers().eval(), (torch.zeros(64, 64),), cache=False)
    assert isinstance(model, CompiledModel)
    assert model.mlir("spyre.kernel").count("func.call") >= 4, "the layers are no region: the test shows nothing"
    graphs = model.graphs()
    made = Counter(n.figures.get("aten operation") for n in graphs.at("spyre.kernel").nodes if n.kind == "op")
    assert made.pop(None, 0) == 0
    operations = [n for n in graphs.at("aten").nodes if n.kind not in ("input", "output")]
    assert {n.id: int(n.figures["kernels"]) for n in operations} == made
    lines = {n.group[:2] for n in operations if "linear" in n.label}
    assert lines == {("layers", str(n)) for n in range(4)}
    for node in graphs.at("superdsc").nodes:
        if node.kind == "op":
            assert node.group[: len(node.id.split("/")) - 1] == tuple(node.id.split("/")[:-1])
