"""Functions of torch that are replaced in a trace."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch._higher_order_ops.scan import scan

from spyre_mlir.frontend.torch_tracing import carried_apart


def test_what_is_carried_twice_is_two_arguments_of_the_body() -> None:
    class Twice(nn.Module):
        def forward(self, x: torch.Tensor, h: torch.Tensor) -> Any:
            return scan(lambda c, row: ((c[0] + row, c[1] * row), c[0] - c[1] + h), (h, h), x, dim=0)

    with torch.no_grad(), carried_apart():
        traced = torch.export.export(Twice(), (torch.ones(3, 2), torch.ones(2)))
    (body,) = (m for m in traced.graph_module.children() if isinstance(m, torch.fx.GraphModule))
    assert all(node.users for node in body.graph.find_nodes(op="placeholder"))
