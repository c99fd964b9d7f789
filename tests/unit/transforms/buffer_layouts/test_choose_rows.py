"""Pass `choose-rows`: which loop of a product its rows are."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import spyre_mlir
from spyre_mlir.dialects.spyre.kernel import ComputeOp
from spyre_mlir.frontend import import_program
from spyre_mlir.pipeline import lower
from spyre_mlir.transforms.utils.kernels.loops import row_loops
from spyre_mlir.universe import make_context


def product_of(layer: nn.Module, *shape: int, **options: dict[str, object]) -> ComputeOp:
    """The product of a layer in float16, with inputs that lie as it reads them."""
    program = import_program(layer.half().eval(), (torch.zeros(shape).half(),))
    options = {"place-inputs": {"inputs": "free"}, **{name.replace("_", "-"): given for name, given in options.items()}}
    lowered = lower(program.module, make_context(), until="spyre.kernel", options=options)
    (product,) = (op for op in lowered.modules["spyre.kernel"].walk() if isinstance(op, ComputeOp) and op.is_product)
    return product


def rows_of(*shape: int) -> int:
    """How many rows the product of a linear layer has."""
    product = product_of(nn.Linear(shape[-1], 1024, bias=False), *shape)
    return product.space.extents[row_loops(product)[-1]]


@pytest.mark.parametrize(
    ("shape", "rows"),
    [((512, 2, 768), 512), ((2, 512, 768), 512), ((128, 8, 768), 128)],
    ids=["positions first", "sequences first", "eight sequences"],
)
def test_rows_are_the_longer_loop(shape: tuple[int, ...], rows: int) -> None:
    assert rows_of(*shape) == rows


def test_loops_that_gain_little_stay() -> None:
    # 1 % less for the product by itself, and 7 % more for the bottleneck of a ResNet, whose windows have whole rows.
    turned = product_of(nn.Conv2d(256, 64, 1, bias=False), 1, 256, 56, 56)
    kept = product_of(nn.Conv2d(256, 64, 1, bias=False), 1, 256, 56, 56, choose_rows={"enabled": False})
    assert turned.maps == kept.maps


@pytest.mark.parametrize("shape", [(48, 2, 64), (5, 33, 64), (2, 3, 40, 64)])
def test_every_level_agrees_with_eager(shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 64)).eval(), torch.randn(shape)
    assert spyre_mlir.compile(model, (x,)).verify(x)
