"""Places that a tensor of one integer names, read and written in one program; negative ones count from the end."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import spyre_mlir
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.errors import InputError
from tests.functions import FunctionModel

C = torch.linspace(-1.0, 1.0, 32).reshape(4, 8)
X = torch.tensor([3.0, 1.0, 4.0, 1.5])


def columns(c: Tensor, p: Tensor, x: Tensor) -> Any:
    c = c.clone()
    c[:, p] = x
    return c, c[..., p] + 1


def rows(c: Tensor, p: Tensor, x: Tensor) -> Any:
    c = c.clone()
    c[p, 1:3] = x[:2]
    c[p] += 1
    c[p, -1] = 7
    c[None, 0, p] = x[None, None, 0]
    return c, c[p] * 2


def in_views(c: Tensor, p: Tensor, x: Tensor) -> Any:
    """Writes through what an index gives reach the tensor."""
    c = c.clone()
    c[:, p].add_(x)
    c[p].mul_(2)
    c[p][1] = 5.0
    return c


def read_alone(c: Tensor, p: Tensor, _x: Tensor) -> Any:
    return c[:, p], c[p]


@cache
def compiled_once(program: Callable[..., Any]) -> CompiledModel:
    """A program for all tests that only call it."""
    compiled = spyre_mlir.compile(FunctionModel(program), (C, torch.tensor(2), X), numerics="exact")
    assert isinstance(compiled, CompiledModel)
    return compiled


@pytest.mark.parametrize("program", [columns, rows, in_views, read_alone], ids=lambda p: p.__name__)
def test_every_position_is_as_in_eager(program: Callable[..., Any]) -> None:
    compiled = compiled_once(program)
    assert not compiled.host_steps
    for position in (2, 0, 3, -1, -4):
        args = C, torch.tensor(position), X
        torch.testing.assert_close(compiled(*args), program(*args))
    verification = compiled.verify(C, torch.tensor(1), X)
    assert verification, str(verification)


@pytest.mark.parametrize("program", [columns, rows, in_views, read_alone], ids=lambda p: p.__name__)
def test_every_position_is_as_in_eager_through_torch_compile(program: Callable[..., Any]) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(program, backend="spyre", options={"numerics": "exact", "host_fallback": "error"})
    for position in (2, 0, 3, -1, -4):
        args = C, torch.tensor(position), X
        torch.testing.assert_close(compiled(*args), program(*args))


@pytest.mark.parametrize("by_torch", [False, True], ids=["compile", "torch.compile"])
def test_views_beside_a_position_are_views_and_writes_reach_the_input(*, by_torch: bool) -> None:
    def program(c: Tensor, p: Tensor) -> tuple[Tensor, Tensor]:
        c[p] += 1
        return c[1:], c[p] * 2

    torch._dynamo.reset()
    given, wanted, place = C.clone(), C.clone(), torch.tensor(2)
    compiled: Callable[..., Any] = torch.compile(program, backend="spyre", options={"numerics": "exact"})
    if not by_torch:
        compiled = spyre_mlir.compile(FunctionModel(program), (C, place), numerics="exact")
    results = compiled(given, place)
    torch.testing.assert_close(results, program(wanted, place))
    torch.testing.assert_close(given, wanted)
    assert results[0].data_ptr() == given[1:].data_ptr()


def test_a_row_that_a_position_names_is_a_view_after_a_break_too() -> None:
    def program(c: Tensor, p: Tensor) -> Tensor:
        row = c[p]
        torch._dynamo.graph_break()
        row.add_(1)
        return c * 2

    torch._dynamo.reset()
    compiled = torch.compile(program, backend="spyre", options={"numerics": "exact"})
    for position in (2, -1, 0):
        given, wanted = C.clone(), C.clone()
        torch.testing.assert_close(compiled(given, torch.tensor(position)), program(wanted, torch.tensor(position)))
        torch.testing.assert_close(given, wanted)


@pytest.mark.parametrize("program", [columns, rows, in_views, read_alone], ids=lambda p: p.__name__)
@pytest.mark.parametrize("position", [8, -9])
def test_a_position_outside_is_refused(program: Callable[..., Any], position: int) -> None:
    compiled = compiled_once(program)
    with pytest.raises(InputError, match=rf"'args_1' holds {position}, and aten.index\S+ takes -\d to \d\n"):
        compiled(C, torch.tensor(position), X)


class Cache(nn.Module):
    """A step of a decoder: a cache that is a buffer, written where the call says."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("kept", torch.zeros(4, 8))

    def forward(self, x: Tensor, position: Tensor) -> Tensor:
        self.kept[:, position] = x
        return self.kept.sum(-1)


def test_a_buffer_is_written_where_the_call_says() -> None:
    model, eager = Cache(), Cache()
    compiled = spyre_mlir.compile(model, (X, torch.tensor(0)), numerics="exact")
    for position in (0, 5, 2):
        args = X + position, torch.tensor(position)
        torch.testing.assert_close(compiled(*args), eager(*args))
        torch.testing.assert_close(model.kept, eager.kept)


@pytest.mark.parametrize("table", [C[:, :1], torch.arange(4).reshape(4, 1), C[:, :1] > 0], ids=lambda t: str(t.dtype))
def test_negative_rows_of_one_column(table: Tensor) -> None:
    """The device gathers no rows of one element; the comparisons that stand for it count from the end, too."""
    index = torch.tensor([-1, 0, -4, 2])
    compiled = spyre_mlir.compile(FunctionModel(lambda t, i: t[i]), (table, index), numerics="exact")
    assert compiled(table, index).equal(table[index])
