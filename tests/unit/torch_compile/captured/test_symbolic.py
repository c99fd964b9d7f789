"""Graphs captured with symbolic sizes are imported once."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from torch import nn
from torch.export import Dim

import spyre_mlir
from spyre_mlir import frontend, torch_compile
from spyre_mlir.torch_compile.captured.symbolic import SymbolicGraph


@pytest.fixture(autouse=True)
def fresh() -> None:
    torch.compiler.reset()


@pytest.fixture
def imports(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The imports of a test."""
    found: list[Any] = []
    real = frontend.import_program

    def counted(*args: Any, **options: Any) -> Any:
        found.append(args)
        return real(*args, **options)

    monkeypatch.setattr(frontend, "import_program", counted)
    return found


def fast(model: Any) -> Any:
    return torch.compile(model, backend=torch_compile.spyre, options={"numerics": "exact"}, dynamic=True)


def test_every_size_is_a_specialisation(imports: list[Any]) -> None:
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU()).eval()
    compiled = fast(model)
    with torch.no_grad():
        for rows in (5, 7, 33):
            x = torch.randn(rows, 4)
            assert torch.allclose(compiled(x), model(x), atol=1e-6)
    assert len(imports) == 1


def test_a_graph_without_symbols_is_compiled_as_it_is(imports: list[Any]) -> None:
    compiled = torch.compile(torch.exp, backend=torch_compile.spyre, options={"numerics": "exact"}, dynamic=False)
    assert torch.allclose(compiled(torch.ones(3)), torch.ones(3).exp())
    assert torch.allclose(compiled(torch.ones(4)), torch.ones(4).exp())
    assert len(imports) == 2


def test_a_frozen_buffer_that_changes_makes_another_export() -> None:
    class Masked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.mask: torch.Tensor
            self.register_buffer("mask", torch.tensor([1.0, 0.0, 2.0]))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * (self.mask + 1)

    model = Masked().eval()
    compiled = fast(model)
    for rows, factor in ((5, 1.0), (6, 3.0), (5, 1.0), (7, 1.0)):
        model.mask.mul_(factor)
        x = torch.randn(rows, 3)
        assert torch.allclose(compiled(x), model(x), atol=1e-6)


def test_a_number_that_the_export_makes_static_has_programs_of_its_own() -> None:
    """Paged generation of ibm-fms has one: a size of 1 that Dynamo left open."""

    class Viewing(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor, n: int) -> torch.Tensor:
            return x.sum() + y.view(2, n)

    shapes: Any = ({0: Dim.AUTO}, {1: Dim.AUTO}, Dim.DYNAMIC)
    x, y = torch.randn(3, 4), torch.randn(2, 2)
    given = (x, y[:, :1], 1)
    make = partial(spyre_mlir.compile, Viewing(), given, dynamic_shapes=shapes, numerics="exact")
    graph = SymbolicGraph.of(make, {})
    program = graph.program(given)
    assert program is not None
    assert torch.allclose(program(*given), x.sum() + y[:, :1], atol=1e-5)
    assert graph.program((x, y, 2)) is None


def test_a_graph_without_rows_whose_columns_are_a_symbol() -> None:
    def twice(x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x, x[:1], x * 2])

    compiled = fast(twice)
    for rows, columns in ((5, 7), (0, 7), (0, 9), (1, 9)):
        x = torch.randn(rows, columns)
        torch.testing.assert_close(compiled(x), twice(x))
