"""Loops over many slices whose other sizes are symbols: they stay loops, and every level is as eager."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._higher_order_ops.map import map as map_slices
from torch._higher_order_ops.scan import scan
from torch.export import Dim

import spyre_mlir
from spyre_mlir.dynamic.model import DynamicModel
from spyre_mlir.errors import UnsupportedError
from tests.end_to_end.importing.against_eager import close, results
from tests.functions import FunctionModel

pytestmark = pytest.mark.filterwarnings("ignore::spyre_mlir.transforms.utils.host_fallback.HostStepWarning")
BATCH = Dim("batch", min=2, max=64)
SHAPES = (({1: BATCH}, {0: BATCH}),)
WEIGHT = torch.linspace(-0.5, 0.5, 36).reshape(6, 6)


def inputs(batch: int) -> tuple[Tensor, Tensor]:
    x = torch.linspace(-1.5, 1.5, 9 * batch * 6).reshape(9, batch, 6)
    return x, x[0].flip(0) * 0.5


def running(x: Tensor, h: Tensor) -> Any:
    return scan(lambda c, row: (torch.tanh(c @ WEIGHT + row), c.sum(0)), h, x, dim=0)


def sizes_in_the_body(x: Tensor, h: Tensor) -> Any:
    def step(c: Tensor, row: Tensor) -> Any:
        batch = row.shape[0]
        return c * 0.5 + row / batch + torch.arange(batch).unsqueeze(1), (c - row).reshape(2 * batch, 3)

    return scan(step, h, x, dim=0)


def a_size_from_outside(x: Tensor, h: Tensor) -> Any:
    return map_slices(lambda row: (row + 1) * h.shape[0], torch.ones(9, 3)), h * 2


def a_tensor_as_large(x: Tensor, h: Tensor) -> Any:
    return map_slices(lambda row, h: row @ row.t() + h @ torch.ones(6, row.shape[0]).triu(), x, h)


def counting_backwards(x: Tensor, h: Tensor) -> Any:
    def step(carried: Any, row: Tensor) -> Any:
        count, most = carried
        return (count + 1, torch.maximum(most, row)), torch.where(row > 0, row, most) * count

    return scan(step, (torch.zeros((), dtype=torch.int64), h), x, dim=0, reverse=True)


def carried_twice_and_read(x: Tensor, h: Tensor) -> Any:
    def step(carried: Any, row: Tensor) -> Any:
        a, b = carried
        return (a * 0.5 + row, b * 0.25 - row), torch.cat([a - b, h])

    return scan(step, (h, h), x, dim=0)


def drawing(x: Tensor, h: Tensor) -> Any:
    return scan(lambda c, row: (c + torch.rand_like(row), row * 2), h, x, dim=0)


PROGRAMS: tuple[Callable[..., Any], ...] = (
    running, sizes_in_the_body, a_size_from_outside, a_tensor_as_large, counting_backwards, carried_twice_and_read,
    drawing,
)  # fmt: skip


def compiled_with_symbols(program: Callable[..., Any], **options: Any) -> tuple[nn.Module, DynamicModel]:
    model = FunctionModel(program)
    compiled = spyre_mlir.compile(model, inputs(4), dynamic_shapes=SHAPES, numerics="exact", **options)
    assert isinstance(compiled, DynamicModel)
    return model, compiled


@pytest.fixture(autouse=True)
def compiled_anew() -> None:
    """Eager loops are compiled by Dynamo, which gives up after some."""
    torch._dynamo.reset()


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_every_level_is_eager(program: Callable[..., Any]) -> None:
    model, compiled = compiled_with_symbols(program)
    assert "control.for_loop" in str(compiled.mlir("aten"))
    close(results(compiled, inputs(3)), results(model, inputs(3)))
    verification = compiled.verify(*inputs(3))
    assert verification, str(verification)


def test_one_row() -> None:
    """Torch treats it apart."""
    model, compiled = compiled_with_symbols(running)
    close(results(compiled, inputs(1)), results(model, inputs(1)))


@pytest.mark.parametrize("program", [sizes_in_the_body, running], ids=lambda p: p.__name__)
def test_torch_compile(program: Callable[..., Any]) -> None:
    model = FunctionModel(program)
    compiled = torch.compile(model, backend="spyre", dynamic=True, options={"numerics": "exact"})
    for batch in (4, 7):
        close(results(compiled, inputs(batch)), results(model, inputs(batch)))


def test_from_disk(tmp_path: Path) -> None:
    model, compiled = compiled_with_symbols(running)
    loaded = spyre_mlir.load(compiled.save(tmp_path / "saved"), numerics="exact")
    close(results(loaded, inputs(6)), results(model, inputs(6)))


def padded(x: Tensor, h: Tensor) -> Any:
    return scan(lambda c, row: (c * 0.5 + row, (c * row).sum(0)), h, x, dim=0)


def reached_in_the_second_trip(x: Tensor, h: Tensor) -> Any:
    return scan(lambda c, row: (c * 0.5 + 1, (c + row).sum(0)), h, x, dim=0)


def test_buckets() -> None:
    model, compiled = compiled_with_symbols(padded, buckets=[8, 20])
    for batch in (3, 11):
        close(results(compiled, inputs(batch)), results(model, inputs(batch)))
    assert len(compiled.programs) == 2


def test_padding_that_a_later_trip_would_reach_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="takes in padding, which holds any numbers"):
        compiled_with_symbols(reached_in_the_second_trip, buckets=[8])
