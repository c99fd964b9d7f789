"""Numbers that control flow is given and torch knows are constants of its graphs; other programs stay as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._higher_order_ops.while_loop import while_loop
from torch.export import Dim, ExportedProgram

import spyre_mlir
from spyre_mlir.frontend.capture.control_flow.kept import is_kept, nodes_within, operands_of
from spyre_mlir.frontend.capture.control_flow.known_numbers import with_known_numbers
from tests.end_to_end.importing.against_eager import close, eager, results
from tests.functions import FunctionModel

X = torch.linspace(-1.0, 1.5, 24).reshape(8, 3)


def size_known_later(x: Tensor) -> Any:
    """A sum with 8 rows says what the size is, behind the loop that is given it."""
    size = x.shape[0]
    y = while_loop(lambda i, _y: i < size - 5, lambda i, y: (i + 1, y * 0.5 + size), (size - 7, x))[1]
    return y + torch.ones(8, 3)


def size_of_branches(x: Tensor) -> Any:
    size = x.shape[0]

    def outer(x: Tensor) -> Tensor:
        return torch.cond(x.sum() > 0, lambda x: x + size, lambda x: x - size, (x,))

    return torch.cond(x.mean() > 0, outer, lambda x: x * size, (x,)) + torch.ones(8, 3)


def size_unknown(x: Tensor) -> Any:
    size = x.shape[0]
    return torch.cond(x.sum() > 0, lambda x: x + size, lambda x: x * size, (x,))


def exported(program: Callable[..., Any]) -> ExportedProgram:
    return torch.export.export(FunctionModel(program), (X,), dynamic_shapes=(({0: Dim.AUTO},),))


@pytest.fixture(autouse=True)
def compiled_anew() -> None:
    torch._dynamo.reset()


@pytest.mark.parametrize("program", [size_known_later, size_of_branches], ids=lambda p: p.__name__)
def test_known_sizes_are_no_operands(program: Callable[..., Any]) -> None:
    before = exported(program)
    after = with_known_numbers(before)
    (old,), (call,) = filter(is_kept, before.graph.nodes), filter(is_kept, after.graph.nodes)
    assert len(operands_of(call)[1]) == len(operands_of(old)[1]) - 1
    assert any(8 in node.args for node in nodes_within(call))


def test_a_size_that_is_a_symbol_stays() -> None:
    before = exported(size_unknown)
    assert with_known_numbers(before) is before


@pytest.mark.parametrize("program", [size_known_later, size_of_branches], ids=lambda p: p.__name__)
def test_a_call_is_eager(program: Callable[..., Any]) -> None:
    compiled = spyre_mlir.compile(exported(program), numerics="exact")
    for x in (X, X - 1):
        close(results(compiled, (x,)), eager(FunctionModel(program), (x,)))
