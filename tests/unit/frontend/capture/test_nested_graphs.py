"""Graphs within graphs: what runs without gradients is read in place."""

from __future__ import annotations

import logging

import numpy as np
import pytest
import torch
from torch import nn

from spyre_mlir.frontend import import_program
from spyre_mlir.frontend.capture.nested_graphs import FlatGraph
from spyre_mlir.machine.levels.run import run_function

X = torch.arange(12.0).reshape(3, 4)


class Frozen(nn.Module):
    """A part without gradients that makes two tensors and writes to a buffer, in one inside it with gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(3, 4))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = x * 2
        with torch.no_grad():
            low, high = y.chunk(2, -1)
            self.count.add_(y)
            with torch.enable_grad():
                low = low + 1
            kept = low * high
        return kept + y[:, :2], self.count * 1


def test_calls_stand_in_place_of_the_graph_that_holds_them() -> None:
    exported = torch.export.export(Frozen(), (X,))
    assert any(node.op == "get_attr" for node in exported.graph.nodes)
    flat = FlatGraph.of(exported.graph_module)
    ops = [node.op for node in flat.nodes]
    assert "get_attr" not in ops
    assert ops[-1] == "output"
    assert ops.count("output") == len(flat.calls) + 1 >= 2
    assert all(node.op == "placeholder" for node in flat.given)


def test_the_program_is_that_of_a_model_without_gradients(caplog: pytest.LogCaptureFixture) -> None:
    with torch.no_grad():
        plain = import_program(torch.export.export(Frozen(), (X,)))
    with caplog.at_level(logging.DEBUG, "spyre_mlir"):
        nested = import_program(torch.export.export(Frozen(), (X,)))
    assert "as a whole" not in caplog.text  # torch's own decomposition takes seconds
    assert str(nested.module) == str(plain.module)
    given = {"buffer": np.zeros((3, 4), np.float32), "input": X.numpy()}
    results = run_function(nested.module, [given[argument.kind] for argument in nested.arguments])
    *shown, counted = results
    kept, count = Frozen()(X)
    assert np.array_equal(counted, 2 * X.numpy())
    assert [np.array_equal(a, b) for a, b in zip(shown, (kept.detach(), count), strict=True)] == [True, True]
