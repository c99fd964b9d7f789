"""Constants that branches and bodies make of numbers of Python belong to the program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._higher_order_ops.map import map as map_over
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind

import spyre_mlir
from spyre_mlir.frontend.capture.control_flow.lifted_constants import with_lifted_constants
from spyre_mlir.frontend.capture.nested_graphs import graphs_of
from tests.functions import FunctionModel

pytestmark = pytest.mark.filterwarnings("ignore")
X = torch.arange(12.0).reshape(4, 3)


def row() -> Tensor:
    return torch.tensor([1.0, 2.0, 3.0])


def with_one(s: Tensor) -> Tensor:
    y = s.clone()
    y[0] = 5.0  # torch makes a tensor of the number
    return y


def branches(x: Tensor) -> Tensor:
    return torch.cond(x.sum() > 0, lambda s: s + row(), lambda s: s * torch.tensor(2.0) - row(), (x,))


def one_branch(x: Tensor) -> Tensor:
    return torch.cond(x.sum() > 0, with_one, lambda s: s + 1, (x,))


def loop(x: Tensor) -> Any:
    return while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, with_one(y) + row()), (torch.tensor(0), x))


def condition(x: Tensor) -> Any:
    return while_loop(lambda y: (y.sum() < row() * 50).any(), lambda y: (y + 1,), (x,))


def slices(x: Tensor) -> Any:
    return scan(lambda c, v: (c + row(), v * torch.tensor([3.0, 2.0, 1.0])), x[0] * 1, x)


def mapped(x: Tensor) -> Tensor:
    return map_over(lambda v: v * row(), x)


def nested(x: Tensor) -> Tensor:
    def inner(s: Tensor) -> Tensor:
        return torch.cond(s.sum() > 100, lambda s: s + row(), lambda s: s * 2 + row(), (with_one(s),))

    return torch.cond(x.sum() > 0, inner, lambda s: s + 1, (x,)) + torch.tensor(0.5)


def beside_sizes(x: Tensor) -> Tensor:
    return branches(x)[x > 3]


BRANCHES = (branches, one_branch, nested, beside_sizes)
PROGRAMS = (*BRANCHES, loop, condition, slices, mapped)


@pytest.fixture(autouse=True)
def forgets() -> None:
    """Eager's control flow compiles itself, and gives up after some programs."""
    torch._dynamo.reset()


def eager(program: Callable[..., Any], x: Tensor) -> Any:
    with torch.compiler.set_stance("force_eager"):
        return program(x)


def exported(program: Callable[..., Any]) -> ExportedProgram:
    return torch.export.export(FunctionModel(program), (X,))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_every_level_is_eager(program: Callable[..., Any]) -> None:
    """With numbers that take one branch, and with those that take the other."""
    made = spyre_mlir.compile(FunctionModel(program), (X,), numerics="exact")
    for given in (X, -X):
        torch.testing.assert_close(made(given), eager(program, given))
    assert made.verify(X) and (program not in BRANCHES or made.verify(-X))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_torch_compile_is_eager(program: Callable[..., Any]) -> None:
    made = torch.compile(program, backend="spyre", fullgraph=program is not beside_sizes)
    torch.testing.assert_close(made(X), eager(program, X), atol=0.05, rtol=0.01)


def test_programs_without_such_constants_are_the_same_object() -> None:
    before = exported(lambda x: torch.cond(x.sum() > 0, lambda s: s + 1, lambda s: s - 1, (x * row(),)))
    assert with_lifted_constants(before) is before


def test_a_tensor_is_declared_once_and_handed_to_both_branches() -> None:
    before = exported(branches)
    after = with_lifted_constants(before)
    kinds = [spec.kind for spec in after.graph_signature.input_specs]
    assert kinds == [*[InputKind.CONSTANT_TENSOR] * 3, InputKind.USER_INPUT]
    outer, *inner = graphs_of(after.graph_module)
    names = [spec.arg.name for spec in after.graph_signature.input_specs]
    assert [n.name for n in outer.graph.find_nodes(op="placeholder")] == names
    assert [len(graph.graph.find_nodes(op="placeholder")) for graph in inner] == [4, 4]
    assert not any(graph.graph.find_nodes(op="get_attr") for graph in inner)
    assert [spec.kind for spec in before.graph_signature.input_specs] == [InputKind.USER_INPUT]
    torch.testing.assert_close(after.module()(X), branches(X))
