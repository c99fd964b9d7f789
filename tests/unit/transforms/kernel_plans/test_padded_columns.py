"""Products that get columns without readers, and weights of their own where they read a part of one."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from spyre_mlir.compiled import CompiledModel
from spyre_mlir.dialects.spyre.kernel import KernelOp, ToDeviceOp
from spyre_mlir.frontend import import_program
from spyre_mlir.options import CompileOptions
from spyre_mlir.pipeline import lower
from spyre_mlir.universe import make_context

ROWS, DEPTH, STICKS = 64, 128, 17  # a prime number, so that all cores divide rows
WIDTH = STICKS * 64


class Parts(nn.Module):
    """Parts of one product, each with a reader of its own."""

    def __init__(self, *, again: bool = False, parts: int = 2) -> None:
        super().__init__()
        self.weight, self.parts, self.again = nn.Parameter(torch.randn(parts * WIDTH, DEPTH) / 8), parts, again

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        made = torch.nn.functional.linear(x, self.weight).split(WIDTH, -1)
        first = torch.relu(made[0])
        for part in made[1:]:
            first = first * torch.sigmoid(part)
        kept = first.sum(-1) + torch.softmax(first, -1)[:, 0]
        return (kept, torch.nn.functional.linear(x[:3], self.weight)) if self.again else (kept,)


def compiled(model: nn.Module, *args: Tensor, inputs: str = "default") -> CompiledModel:
    program = import_program(model, args)
    # A slow memory, so that a small product takes long.
    options = {"cut-columns": {"numbers": ("hbm_gb_per_s=0.5",)}, "place-inputs": {"inputs": inputs}}
    return CompiledModel(program, lower(program.module, make_context(), options=options), CompileOptions())


def ops(model: CompiledModel, kind: type) -> list:
    return [op for op in model._module("spyre.kernel").walk() if isinstance(op, kind)]  # pyright: ignore[reportPrivateUsage]


def columns_of(model: CompiledModel) -> list[int]:
    return [next(d.extent for d in op.space.data if d.name == "n") for op in ops(model, KernelOp) if op.is_product]


def test_parts_of_a_weight_are_weights_that_the_host_pads() -> None:
    torch.manual_seed(0)
    x = torch.randn(ROWS, DEPTH)
    model = compiled(Parts(), x)
    assert columns_of(model) == [18 * 64] * 2
    sent = [
        op
        for op in ops(model, ToDeviceOp)
        if op.zero_padding is not None and op.result.type.data.shape == (WIDTH, DEPTH)
    ]
    # Each part is taken out of the whole weight, and the columns behind it are zeros.
    assert [op.result.type.data.layout.extents for op in sent] == [(18 * 64, DEPTH)] * 2
    assert all(op.moved is not None for op in sent)
    assert model.verify(x)


def test_a_weight_that_something_else_reads_is_on_the_card_once() -> None:
    model = compiled(Parts(again=True), torch.randn(ROWS, DEPTH))
    assert 18 * 64 not in columns_of(model)
    assert all(op.moved is None for op in ops(model, ToDeviceOp))


@pytest.mark.parametrize("rows", [ROWS, 5])
def test_every_level_agrees_with_torch(rows: int) -> None:
    torch.manual_seed(rows)
    x = torch.randn(rows, DEPTH)
    assert compiled(Parts(parts=1), x).verify(x)
    assert compiled(Parts(parts=3), x).verify(x)


class Product(nn.Module):
    def forward(self, x: Tensor, weight: Tensor) -> Tensor:
        return (x @ weight).sum(-1)


def test_a_matrix_that_the_call_gives_is_not_padded() -> None:
    model = compiled(Product(), torch.randn(ROWS, DEPTH), torch.randn(DEPTH, WIDTH))
    assert 18 * 64 not in columns_of(model)
