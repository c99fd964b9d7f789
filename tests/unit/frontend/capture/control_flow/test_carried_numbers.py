"""Integers that control flow carries become tensors, in every graph; what uses one as a size stays as it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._higher_order_ops.while_loop import while_loop
from torch.export import ExportedProgram

from spyre_mlir.frontend.capture.control_flow.carried_numbers import with_numbers_as_tensors
from spyre_mlir.frontend.capture.control_flow.kept import graphs_of, is_kept
from tests.functions import FunctionModel

X, N = torch.arange(6.0).reshape(2, 3), torch.tensor(2)


def exported(program: Callable[..., Any]) -> ExportedProgram:
    return torch.export.export(FunctionModel(program), (X, N))


def loop_of(program: ExportedProgram) -> torch.fx.Node:
    (loop,) = filter(is_kept, program.graph.nodes)
    return loop


def counted(x: Tensor, n: Tensor) -> Any:
    return while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y + i), (0, x))


def body_targets(program: ExportedProgram) -> list[str]:
    _, (_, body) = graphs_of(loop_of(program))
    return [str(node.target) for node in body.graph.nodes if node.op == "call_function"]


def test_programs_without_numbers_are_the_same_object() -> None:
    before = exported(lambda x, n: while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y + 1), (n * 0, x)))
    assert with_numbers_as_tensors(before) is before


def test_what_is_carried_is_a_tensor_and_what_comes_out_a_number() -> None:
    before = exported(counted)
    after = with_numbers_as_tensors(before)
    number, tensor = loop_of(after).args[2]
    assert (str(number.target), number.args) == ("aten.scalar_tensor.default", (0,))
    assert number.meta["val"].dtype is torch.int64
    assert tensor.name == "args_0"
    assert body_targets(after) == ["aten.scalar_tensor.default", "aten.add.Tensor", "aten.add.Tensor"]
    (result,) = after.graph.find_nodes(op="call_function", target=torch.ops.aten.item.default)
    assert result.name == after.graph_signature.user_outputs[0]
    assert loop_of(before).args[2][0] == 0, "the program given stays as it is"


def test_the_new_program_gives_what_the_loop_gives() -> None:
    got = with_numbers_as_tensors(exported(counted)).module()(X, N)
    assert got[0] == 2
    torch.testing.assert_close(got[1], X + 1)


def test_branches_within_take_tensors() -> None:
    def step(i: Any, y: Tensor) -> Any:
        return i + 1, torch.cond(y.sum() > 0, lambda y: y * i, lambda y: y + i, (y,))

    after = with_numbers_as_tensors(exported(lambda x, n: while_loop(lambda i, y: i < n, step, (0, x))))
    _, (_, body) = graphs_of(loop_of(after))
    (branches,) = filter(is_kept, body.graph.nodes)
    for _, graph in graphs_of(branches):
        assert all(isinstance(n.meta["val"], Tensor) for n in graph.graph.find_nodes(op="placeholder"))
    assert not {str(n.target) for n in body.graph.nodes} & {"aten.item.default", "<built-in function add>"}


@pytest.mark.parametrize(
    "used",
    [
        lambda y, i: y + torch.ones(i).sum(),
        lambda y, i: y + torch.full((i,), i).sum(),
        lambda y, i: y + torch.arange(i).sum(),
        lambda y, i: y + i / 3,
        lambda y, i: y * (i * 0.1),
    ],
    ids=["ones", "full", "arange", "quotient", "product"],
)
def test_sizes_and_doubles_leave_the_loop_as_it_is(used: Callable[[Tensor, Any], Tensor]) -> None:
    before = exported(lambda x, n: while_loop(lambda i, y: i < n, lambda i, y: (i + 1, used(y, i)), (1, x)))
    assert with_numbers_as_tensors(before) is before
