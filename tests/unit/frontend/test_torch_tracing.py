"""Functions of torch that are replaced in a trace: graphs and traces are the usual ones."""

from __future__ import annotations

import operator
from typing import Any

import pytest
import torch
from torch import nn
from torch._higher_order_ops.scan import scan

from spyre_mlir.frontend.capture.export import export_model
from spyre_mlir.frontend.torch_tracing import carried_apart, unread_left_out


def test_a_graph_gets_its_code_at_the_end_or_when_it_is_called() -> None:
    module = torch.fx.symbolic_trace(lambda x: x + 1)
    (added,) = module.graph.find_nodes(op="call_function", target=operator.add)
    with unread_left_out():
        added.args = (added.args[0], 2)
        module.recompile()
        assert "+ 1" in module.code
        assert module(torch.tensor(1)) == 3
        added.args = (added.args[0], 3)
        module.recompile()
    assert "+ 3" in module.code
    assert module(torch.tensor(1)) == 4


def test_an_export_compiles_few_graphs_and_its_traces_have_their_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    class Model(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = x.sin()
            return x.cos()

    compiled = 0
    recompile = torch.fx.GraphModule.recompile

    def counted(module: torch.fx.GraphModule) -> Any:
        nonlocal compiled
        compiled += 1
        return recompile(module)

    monkeypatch.setattr(torch.fx.GraphModule, "recompile", counted)
    x = torch.ones(3)
    with torch.no_grad():
        usual = torch.export.export(Model(), (x,))
    most, compiled = compiled, 0
    ours = export_model(Model(), (x,), {})
    assert compiled < most / 2
    assert ours.graph_module.code == usual.graph_module.code
    traces = [[n.meta.get("stack_trace") for n in program.graph.nodes] for program in (usual, ours)]
    assert traces[0] == traces[1]
    assert "x = x.sin()" in str(traces[1])
    assert torch.equal(ours.module()(x), Model()(x))


def test_what_is_carried_twice_is_two_arguments_of_the_body() -> None:
    class Twice(nn.Module):
        def forward(self, x: torch.Tensor, h: torch.Tensor) -> Any:
            return scan(lambda c, row: ((c[0] + row, c[1] * row), c[0] - c[1] + h), (h, h), x, dim=0)

    with torch.no_grad(), carried_apart():
        traced = torch.export.export(Twice(), (torch.ones(3, 2), torch.ones(2)))
    (body,) = (m for m in traced.graph_module.children() if isinstance(m, torch.fx.GraphModule))
    assert all(node.users for node in body.graph.find_nodes(op="placeholder"))
