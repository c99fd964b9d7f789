"""The argument of a collective that is not torch's."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
from torch.fx import Graph, Node

from spyre_mlir.errors import InputError
from spyre_mlir.frontend.arguments import BoundArgument
from spyre_mlir.frontend.lowering.collectives import ranks_at


def call(group: str) -> Node:
    graph = Graph()
    return graph.call_function(torch.ops._c10d_functional.all_reduce.default, (graph.placeholder("x"), "sum", group))


def test_a_collective_names_the_ranks_of_its_group() -> None:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        assert ranks_at(call("0")) == {"ranks": BoundArgument((0,), False)}
        with pytest.raises(InputError, match="no process group called 'other'"):
            ranks_at(call("other"))
    finally:
        dist.destroy_process_group()


def test_other_calls_have_no_such_argument() -> None:
    graph = Graph()
    assert ranks_at(graph.call_function(torch.ops.aten.relu.default, (graph.placeholder("x"),))) == {}
