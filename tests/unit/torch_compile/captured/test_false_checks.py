"""Checks that Dynamo writes and eager does not make."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.fx import GraphModule

from spyre_mlir.torch_compile.captured.false_checks import without_false_checks

ROW, TABLE = torch.arange(3.0), torch.ones(4, 3, dtype=torch.bool)
CHECK = torch.ops.aten._assert_scalar.default


def captured(function: Callable[..., Any], *args: Tensor) -> GraphModule:
    found: list[GraphModule] = []

    def backend(graph: GraphModule, _inputs: Any) -> Any:
        found.append(graph)
        return lambda *inputs: function(*inputs)

    torch._dynamo.reset()
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        torch.compile(function, backend=backend, fullgraph=True)(*args)
    return found[0]


SELECTIONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "method": lambda x, mask: x.masked_select(mask),
    "function": torch.masked_select,
}


@pytest.mark.parametrize("way", SELECTIONS)
def test_a_selection_that_broadcasts_has_no_bound(way: str) -> None:
    graph = captured(SELECTIONS[way], ROW, TABLE)
    with pytest.raises(RuntimeError, match="u0 <= 3"):
        graph(ROW, TABLE)
    (found,) = without_false_checks(graph)(ROW, TABLE)
    assert torch.equal(found, ROW.repeat(4))


def test_other_checks_stay() -> None:
    def checked(x: Tensor, mask: Tensor) -> Tensor:
        found = x.masked_select(mask)
        torch._check(found.shape[0] <= 5)
        return found

    graph = captured(checked, ROW.expand(4, 3), TABLE & (torch.arange(3) < 1))
    before = len(graph.graph.find_nodes(op="call_function", target=CHECK))
    assert before
    assert len(without_false_checks(graph).graph.find_nodes(op="call_function", target=CHECK)) == before
