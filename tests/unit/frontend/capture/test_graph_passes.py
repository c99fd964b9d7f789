"""Passes of plugins on torch's graph: what they see, what they may change, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.fx import Graph, Node

import spyre_mlir
from spyre_mlir.errors import RegistrationError
from spyre_mlir.frontend.capture.graph_passes import passed_export
from spyre_mlir.plugins import registry

X = torch.linspace(-3, 3, 4 * 64).reshape(4, 64)


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    library = torch.library.Library("grafted", "DEF")
    library.impl(library.define("marker(Tensor self) -> Tensor"), lambda x: x.clone(), "CompositeExplicitAutograd")
    with registry.isolated():
        yield
    library._destroy()


class Marked(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(64, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.grafted.marker(torch.nn.functional.silu(torch.ops.grafted.marker(self.linear(x))))


def called(graph: Graph) -> list[str]:
    return [str(node.target) for node in graph.nodes if node.op == "call_function"]


def drop_markers(graph: Graph) -> None:
    for node in list(graph.nodes):
        if node.target is torch.ops.grafted.marker.default:
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)


def split_silu(graph: Graph) -> None:
    for node in [n for n in graph.nodes if n.target is torch.ops.aten.silu.default]:
        with graph.inserting_before(node):
            gate = graph.call_function(torch.ops.aten.sigmoid.default, (node.args[0],))
            node.replace_all_uses_with(graph.call_function(torch.ops.aten.mul.Tensor, (node.args[0], gate)))
        graph.erase_node(node)


def test_a_pass_on_the_exported_graph_removes_operators_the_results_too() -> None:
    model = Marked()
    exported = torch.export.export(model, (X,))
    before = called(exported.graph)
    registry.register_graph_pass("exported")(drop_markers)
    assert called(passed_export(exported).graph) == ["aten.linear.default", "aten.silu.default"]
    compiled = spyre_mlir.compile(exported, numerics="exact")
    assert compiled.host_steps == ()
    torch.testing.assert_close(compiled(X), model(X), rtol=1e-5, atol=1e-5)
    assert called(exported.graph) == before, "the program given stays"


def test_a_pass_on_the_decomposed_graph_adds_operators() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.SiLU())
    registry.register_graph_pass("decomposed")(split_silu)
    compiled = spyre_mlir.compile(model, (X,), numerics="exact")
    text = compiled.mlir("aten")
    assert "aten.silu" not in text
    assert "aten.sigmoid(%linear)" in text
    torch.testing.assert_close(compiled(X), model(X), rtol=1e-5, atol=1e-5)


def test_new_nodes_have_the_place_of_what_they_read() -> None:
    registry.register_graph_pass("exported")(split_silu)
    exported = passed_export(torch.export.export(Marked(), (X,)))
    nodes: dict[str, Node] = {str(n.target): n for n in exported.graph.nodes}
    assert nodes["aten.mul.Tensor"].meta["stack_trace"] == nodes["grafted.marker.default"].meta["stack_trace"]
    assert nodes["aten.mul.Tensor"].meta["val"].shape == (4, 64)


def test_passes_see_the_graph_before_and_after_the_decompositions() -> None:
    seen: dict[str, list[str]] = {}
    for point in ("exported", "decomposed"):
        registry.register_graph_pass(point)(lambda graph, at=point: seen.update({at: called(graph)}))
    spyre_mlir.extract_ir(torch.nn.Hardswish(inplace=True), (X,))
    assert seen == {"exported": ["aten.hardswish_.default"], "decomposed": ["aten.hardswish.default"]}


def failing(graph: Graph) -> None:
    raise KeyError("key")


def unordered(graph: Graph) -> None:
    (node,) = (n for n in graph.nodes if n.op == "call_function")
    with graph.inserting_before(node):
        graph.call_function(torch.ops.aten.neg.default, (node,))


def wrongly_shaped(graph: Graph) -> None:
    (node,) = (n for n in graph.nodes if n.op == "call_function")
    with graph.inserting_after(node):
        graph.call_function(torch.ops.aten.mm.default, (node, node))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (failing, r"\.failing, registered for graph pass at exported, failed: KeyError"),
        (unordered, r"\.unordered, registered for graph pass at exported, failed: RuntimeError: Argument"),
        (wrongly_shaped, r"\.wrongly_shaped adds a call of aten\.mm\.default that torch refuses: a and b"),
    ],
)
def test_mistakes_of_passes_name_their_owner(function: Any, message: str) -> None:
    registry.register_graph_pass("exported")(function)
    with pytest.raises(RegistrationError, match=message):
        spyre_mlir.compile(torch.nn.ReLU(), (X,))
