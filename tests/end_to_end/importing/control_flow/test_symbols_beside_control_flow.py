"""Symbols of inputs beside loops over so many slices, and beside sizes that data decides: every level against eager."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._higher_order_ops.map import map as mapped
from torch._higher_order_ops.scan import scan

import spyre_mlir
from spyre_mlir.errors import InputError, UnsupportedError
from spyre_mlir.parted.model import PartedModel
from tests.end_to_end.importing.against_eager import close, results
from tests.end_to_end.importing.control_flow.symbolic_rows import FEW, MANY, SHAPES, WEIGHT, N, rows
from tests.functions import FunctionModel

pytestmark = pytest.mark.filterwarnings("ignore")


def each_row(x: Tensor, n: Tensor) -> Any:
    return mapped(lambda row, n: row.softmax(-1) * n, x, n)


def a_scan(x: Tensor, n: Tensor) -> Any:
    return scan(lambda c, row: (c * 0.5 + row, c - row), x[0] * 2, x)


def places(x: Tensor, _n: Tensor) -> Any:
    return x.nonzero(), (x > 0).nonzero().sum()


def selected(x: Tensor, n: Tensor) -> Any:
    y = x[x[:, 0] > 0]
    return (y @ WEIGHT).softmax(-1) * n, y.shape[0] + x.shape[0]


def selected_beside_all(x: Tensor, _n: Tensor) -> Any:
    mask = x[:, 1] > 0
    return torch.zeros_like(x).masked_scatter(mask.unsqueeze(1).expand_as(x), x[mask] @ WEIGHT) + x.mean(0)


def a_slice(x: Tensor, n: Tensor) -> Any:
    k = n.item()
    torch._check(k >= 1)
    torch._check(k < x.shape[0])
    return x[:k].sum(0) + x.sum(0)


def a_branch_of_selected_rows(x: Tensor, n: Tensor) -> Any:
    y = x[x[:, 0] > 0]
    return torch.cond(n > 2, lambda y: y + 1, lambda y: y * 2, (y,)).sum(0) + x.exp()


def different_numbers(x: Tensor, n: Tensor) -> Any:
    found, counts = torch.unique((x * 2).round(), return_counts=True)
    return found * n, counts.sum() + x.shape[0]


SLICED = (each_row, a_scan)
SIZED = (places, selected, selected_beside_all, a_slice, a_branch_of_selected_rows, different_numbers)


def compiled_with_symbols(program: Callable[..., Any]) -> tuple[FunctionModel, PartedModel]:
    model = FunctionModel(program)
    compiled = spyre_mlir.compile(model, FEW, dynamic_shapes=SHAPES, numerics="exact")
    assert isinstance(compiled, PartedModel)
    return model, compiled


@pytest.fixture(autouse=True)
def compiled_anew() -> None:
    """Eager control flow is compiled by Dynamo, which gives up after some."""
    torch._dynamo.reset()


@pytest.mark.parametrize("program", [*SLICED, *SIZED], ids=lambda p: p.__name__)
def test_every_level_is_eager(program: Callable[..., Any]) -> None:
    model, compiled = compiled_with_symbols(program)
    for args in (FEW, MANY):
        got = results(compiled, args)
        torch._dynamo.reset()
        close([torch.as_tensor(r) for r in got], [torch.as_tensor(r) for r in results(model, args)])
        torch._dynamo.reset()
        verification = compiled.verify(*args)
        assert verification, str(verification)


@pytest.mark.parametrize("program", SLICED, ids=lambda p: p.__name__)
def test_torch_compile(program: Callable[..., Any]) -> None:
    model = FunctionModel(program)
    compiled = torch.compile(model, backend="spyre", dynamic=True, options={"numerics": "exact"})
    for args in (FEW, MANY):
        got = results(compiled, args)
        close([torch.as_tensor(r) for r in got], [torch.as_tensor(r) for r in results(model, args)])


@pytest.mark.parametrize("program", SIZED, ids=lambda p: p.__name__)
def test_torch_compile_where_data_decides_sizes(program: Callable[..., Any]) -> None:
    model, settings = FunctionModel(program), {"capture_dynamic_output_shape_ops": True, "capture_scalar_outputs": True}
    with torch._dynamo.config.patch(settings):
        compiled = torch.compile(model, backend="spyre", dynamic=True, fullgraph=True, options={"numerics": "exact"})
        for args in (FEW, MANY):
            got = results(compiled, args)
            close([torch.as_tensor(r) for r in got], [torch.as_tensor(r) for r in results(model, args)])


@pytest.mark.parametrize("program", [a_scan, selected], ids=lambda p: p.__name__)
def test_from_disk(program: Callable[..., Any], tmp_path: Path) -> None:
    model, compiled = compiled_with_symbols(program)
    loaded = spyre_mlir.load(compiled.save(tmp_path / "parts"), numerics="exact")
    for args in (FEW, MANY):
        close([torch.as_tensor(r) for r in results(loaded, args)], [torch.as_tensor(r) for r in results(model, args)])


def test_an_exported_program_with_symbols() -> None:
    exported = torch.export.export(FunctionModel(a_scan), FEW, dynamic_shapes=SHAPES)
    compiled = spyre_mlir.compile(exported, numerics="exact")
    for args in (FEW, MANY):
        close(results(compiled, args), results(a_scan, args))


def test_the_program_of_the_example_is_there_at_once_and_each_size_has_one() -> None:
    _, compiled = compiled_with_symbols(a_scan)
    (first,) = compiled.programs
    results(compiled, FEW)
    assert compiled.programs == (first,)
    results(compiled, MANY)
    assert len(compiled.programs) == 2


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((rows(65), N), r"symbol s0 is 65, expected 2 to 64"),
        ((rows(1), N), r"symbol s0 is 1, expected 2 to 64"),
        ((rows(6).reshape(4, 9), N), r"expected float32\[s0, 6\], got float32\[4, 9\]"),
        ((rows(6)[0], N), r"expected float32\[s0, 6\], got float32\[6\]"),
    ],
)
def test_other_sizes_are_refused(args: tuple[Tensor, Tensor], message: str) -> None:
    with pytest.raises(InputError, match=message):
        compiled_with_symbols(a_scan)[1](*args)


def test_buckets_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="scan over a number of slices that is a symbol") as refused:
        spyre_mlir.compile(FunctionModel(a_scan), FEW, dynamic_shapes=SHAPES, buckets=[8])
    assert str(refused.value.hint).startswith("leave out buckets")
