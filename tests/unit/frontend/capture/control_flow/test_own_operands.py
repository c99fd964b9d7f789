"""Operands of control flow that share memory are cloned, in every graph; other programs stay as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._higher_order_ops.while_loop import while_loop
from torch.export import ExportedProgram

from spyre_mlir.frontend.capture.control_flow.kept import graphs_of, is_kept, operands_of, set_operands
from spyre_mlir.frontend.capture.control_flow.own_operands import with_own_operands
from spyre_mlir.frontend.capture.nested_graphs import graphs_of as graphs_within
from tests.functions import FunctionModel

X, N = torch.arange(12.0).reshape(4, 3), torch.tensor(2.0)


def exported(program: Callable[..., Any]) -> ExportedProgram:
    return torch.export.export(FunctionModel(program), (X, N))


def operands(graph: torch.fx.Graph) -> list[str]:
    """The targets of what the control flow of a graph is given."""
    (call,) = filter(is_kept, graph.nodes)
    return [str(n.target) for n in operands_of(call)[1]]


def test_programs_without_shared_operands_are_the_same_object() -> None:
    def program(x: Tensor, n: Tensor) -> Any:
        return torch.cond(n > 0, lambda x, y: x + y, lambda x, y: x - y, (x.t(), x.t() + 1))

    before = exported(program)
    assert with_own_operands(before) is before


def hand_over_views(call: torch.fx.Node) -> None:
    """Give control flow two views of its first operand, as Dynamo does with the parts of a complex tensor."""
    _, (first, _, *others) = operands_of(call)
    views = list[torch.fx.Node]()
    with call.graph.inserting_before(call):
        for _ in range(2):
            views.append(call.graph.call_function(torch.ops.aten.view.default, (first, [4, 3])))
            views[-1].meta["val"] = first.meta["val"]
    set_operands(call, [*views, *others])


def test_the_second_of_two_views_is_cloned() -> None:
    def program(x: Tensor, n: Tensor) -> Any:
        return torch.cond(n > 0, lambda a, b: a * 2 + b, lambda a, b: a - b, (x + 1, x + 2))

    before = exported(program)
    (call,) = filter(is_kept, before.graph.nodes)
    hand_over_views(call)
    after = with_own_operands(before)
    assert operands(after.graph) == ["aten.view.default", "aten.clone.default"]
    assert "clone" not in str(before.graph)
    torch.testing.assert_close(after.module()(X, N), 3 * (X + 1))


def test_a_loop_may_carry_what_its_body_reads() -> None:
    def program(x: Tensor, n: Tensor) -> Any:
        return while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y + x), (n * 0, x))

    after = with_own_operands(exported(program))
    assert operands(after.graph)[1:] == ["args_0", "args_1", "aten.clone.default"]
    torch.testing.assert_close(after.module()(X, N), (N, 3 * X))


def test_graphs_within_graphs() -> None:
    def inner(x: Tensor, n: Tensor) -> Tensor:
        return torch.cond(n > 1, lambda a, b: a * 2 + b, lambda a, b: a - b, (x + 1, x + 2))

    def program(x: Tensor, n: Tensor) -> Any:
        return torch.cond(n > 0, inner, lambda x, n: x + n, (x, n))

    before = exported(program)
    _, (call,) = (list(filter(is_kept, module.graph.nodes)) for module in graphs_within(before.graph_module)[:2])
    hand_over_views(call)
    after = with_own_operands(before)
    (outer,) = filter(is_kept, after.graph.nodes)
    (_, first), _ = graphs_of(outer)
    assert operands(first.graph) == ["aten.view.default", "aten.clone.default"]
    torch.testing.assert_close(after.module()(X, N), 3 * (X + 1))
