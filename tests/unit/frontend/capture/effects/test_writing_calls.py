"""Custom operators that write to their arguments, in every way into the compiler."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn

import spyre_mlir
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend.process_groups import without_exchange
from tests.functions import FunctionModel

EXACT = {"numerics": "exact", "host_fallback": "allow"}
X = torch.arange(8.0).reshape(2, 4) - 3


@torch.library.custom_op("spyre_tests::add_to", mutates_args={"total"})
def add_to(total: Tensor, more: Tensor, factor: float = 1.0) -> None:
    total.add_(more, alpha=factor)


@torch.library.custom_op("spyre_tests::scale_all", mutates_args={"tensors"})
def scale_all(tensors: list[Tensor], device: int) -> tuple[Tensor, Tensor]:
    """Has an argument whose name is one of torch's own."""
    first = tensors[0].sum()
    for tensor in tensors:
        tensor.mul_(device)
    return first, tensors[1] + 1


@scale_all.register_fake
def _(tensors: list[Tensor], device: int) -> tuple[Tensor, Tensor]:
    return tensors[0].new_empty(()), torch.empty_like(tensors[1])


def a_tensor(x: Tensor) -> Tensor:
    y = x.clone()
    add_to(y, x * 2, 0.5)
    return y + 1


def an_input(x: Tensor) -> Tensor:
    add_to(x, x + 1)
    return x * 2


def a_view(x: Tensor) -> Any:
    y = x.clone()
    row = y[1]
    add_to(y, x)
    add_to(row, x[0])
    return y, row


def itself(x: Tensor) -> Tensor:
    y = x.clone()
    add_to(y, y)
    return y


def a_list(x: Tensor) -> Any:
    tensors = [x + 1, x + 2]
    return scale_all(tensors, 3), tensors


def in_a_branch(x: Tensor) -> Tensor:
    return torch.cond(x.sum() > 0, a_tensor, lambda a: a.sin(), (x,))


@pytest.mark.parametrize("program", [a_tensor, an_input, a_view, itself, a_list, in_a_branch])
def test_programs_give_eagers_numbers(program: Callable[[Tensor], Any]) -> None:
    torch._dynamo.reset()
    compiled = spyre_mlir.compile(FunctionModel(program), (X.clone(),), **EXACT)
    assert compiled.verify(X.clone())
    captured = torch.compile(FunctionModel(program), backend="spyre", options=EXACT, fullgraph=True)
    for x in (X, X + 9):
        mine, through_torch, eager = x.clone(), x.clone(), x.clone()
        with torch.compiler.set_stance("force_eager"):
            wanted = program(eager), eager
        torch.testing.assert_close((compiled(mine), mine), wanted)
        torch.testing.assert_close((captured(through_torch), through_torch), wanted)


class Counted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.total = nn.Buffer(torch.zeros(2, 4))

    def forward(self, x: Tensor) -> Tensor:
        add_to(self.total, x)
        return self.total * 2


def test_a_buffer_is_kept_from_call_to_call(tmp_path: Path) -> None:
    spyre_mlir.compile(Counted(), (X,), **EXACT).save(tmp_path / "saved")
    loaded = spyre_mlir.load(tmp_path / "saved", numerics="exact")
    assert [loaded(X)[0, 0].item() for _ in range(3)] == [-6.0, -12.0, -18.0]


def test_a_view_beside_its_tensor_is_refused() -> None:
    def beside(x: Tensor) -> Tensor:
        y = x.clone()
        add_to(y, y[0])
        return y

    with pytest.raises(UnsupportedError, match=r"spyre_tests\.add_to\S* writes to a tensor, and is given a view of it"):
        spyre_mlir.compile(FunctionModel(beside), (X,), **EXACT)


@torch.library.custom_op("spyre_tests::count_up", mutates_args={"total"})
def count_up(total: Tensor) -> int:
    total.add_(1)
    return 3


@count_up.register_fake
def _(total: Tensor) -> Any:
    return torch.library.get_ctx().new_dynamic_size()


def test_numbers_as_results_are_refused() -> None:
    def counted(x: Tensor) -> Tensor:
        y = x.clone()
        return y * count_up(y)

    with pytest.raises(UnsupportedError, match="writes to its arguments, and returns numbers"):
        spyre_mlir.compile(FunctionModel(counted), (X,), **EXACT)


def test_symbols_as_arguments_are_refused() -> None:
    def sized(x: Tensor) -> Any:
        tensors = [x + 1, x + 2]
        return scale_all(tensors, x.shape[0])

    shapes = (({0: torch.export.Dim("rows", min=2, max=64)},),)
    with pytest.raises(UnsupportedError, match="is given more than tensors, text, types and known numbers"):
        spyre_mlir.compile(FunctionModel(sized), (X,), dynamic_shapes=shapes, **EXACT)


def test_collectives_that_write_are_refused_by_name() -> None:
    def in_place(x: Tensor) -> Any:
        torch.ops._c10d_functional.all_reduce_(y := x.clone(), "sum", dist.group.WORLD.group_name)
        torch.ops._c10d_functional.broadcast_(x, 0, dist.group.WORLD.group_name)
        return y

    message = r"(?s)1 x _c10d_functional\.all_reduce_: it is a collective.*1 x _c10d_functional\.broadcast_: it is"
    with without_exchange(1, 2), pytest.raises(UnsupportedError, match=message):
        spyre_mlir.compile(FunctionModel(in_place), (X,), **EXACT)
