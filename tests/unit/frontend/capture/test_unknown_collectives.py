"""Which operators of process groups have no form."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.fx import Graph

from spyre_mlir.frontend.capture.unknown_collectives import unknown_collective

functional: Any = torch.ops._c10d_functional


@pytest.mark.parametrize(
    ("target", "known"),
    [
        (functional.all_reduce.default, True),
        (functional.wait_tensor.default, True),
        (torch.ops.aten.relu.default, True),
        (functional.all_reduce_coalesced.default, False),
        (functional.all_reduce_.default, False),
        (torch.ops.c10d.allreduce_.default, False),
    ],
)
def test_collectives_without_a_form(target: Any, known: bool) -> None:
    graph = Graph()
    found = unknown_collective(graph.call_function(target, (graph.placeholder("x"), "sum", "0")))
    assert (found is None) is known
    if found is not None:
        assert "all_reduce" in found[1]
