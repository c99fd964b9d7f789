"""Functions behind a product with columns that nothing reads."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from spyre_mlir.compiled import CompiledModel
from spyre_mlir.dialects.spyre.kernel import ComputeOp
from spyre_mlir.frontend import import_program
from spyre_mlir.ops.hardware_functions import COPY
from spyre_mlir.options import CompileOptions
from spyre_mlir.pipeline import lower
from spyre_mlir.universe import make_context

DEPTH, WIDTH, PADDED = 128, 17 * 64, 18 * 64


class Behind(nn.Module):
    """A function of a product, and the sum of its columns."""

    def __init__(self, function: Callable[[Tensor], Tensor], *, bias: bool = False) -> None:
        super().__init__()
        self.layer, self.function = nn.Linear(DEPTH, WIDTH, bias=bias), function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(self.layer(x)).sum(-1)


def compiled(model: nn.Module, *args: Tensor) -> CompiledModel:
    program = import_program(model, args)
    # A slow memory, so that a small product takes long.
    options = {"cut-columns": {"numbers": ("hbm_gb_per_s=0.5",)}}
    return CompiledModel(program, lower(program.module, make_context(), options=options), CompileOptions())


def columns_of(model: CompiledModel) -> dict[str, int]:
    """Elements of the longest loop of each function, copies left out."""
    module = model._module("spyre.kernel")  # pyright: ignore[reportPrivateUsage]
    found = [op for op in module.walk() if isinstance(op, ComputeOp) and op.function.data != COPY]
    return {op.function.data: max(d.extent for d in op.space.data) for op in found}


def test_functions_of_single_elements_have_the_columns_of_their_product() -> None:
    torch.manual_seed(0)
    x = torch.randn(64, DEPTH)
    model = compiled(Behind(torch.nn.functional.silu, bias=True), x)
    assert columns_of(model) == {"batchmatmul": PADDED, "add": PADDED, "silu": PADDED, "sum": WIDTH}
    assert model.verify(x)


def test_functions_that_have_no_value_at_zero_compute_elements_alone() -> None:
    torch.manual_seed(0)
    x = torch.randn(64, DEPTH)
    model = compiled(Behind(lambda y: torch.log(y.abs()) + torch.exp(100 * (y > 9) + y)), x)
    found = columns_of(model)
    assert found["abs"] == found["exp"] == PADDED and found["log"] == WIDTH
    assert model.verify(x)
    found = columns_of(compiled(Behind(lambda y: torch.log(y.abs() + 1) + 1 / (y.abs() + 2)), x))
    assert found["log"] == found["reciprocal"] == PADDED, "zeros are no argument of either"


@pytest.mark.parametrize("function", [lambda y: torch.softmax(y, -1).square(), lambda y: torch.exp(y + 60)])
def test_no_column_without_readers_is_beyond_the_largest_number(function: Callable[[Tensor], Tensor]) -> None:
    """Rows end far below 0, so that e to the distance from there to 0 would be."""
    torch.manual_seed(0)
    x, model = torch.randn(64, DEPTH), Behind(function, bias=True)
    torch.nn.init.constant_(model.layer.bias, -60.0)
    made = compiled(model, x)
    found = columns_of(made)
    assert found["batchmatmul"] == PADDED and found["exp"] == WIDTH
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made(x)
    assert not made.log.overflows
    assert made.verify(x)


def test_a_tensor_that_has_no_more_columns_keeps_a_function_short() -> None:
    torch.manual_seed(0)
    x, y = torch.randn(64, DEPTH), torch.randn(64, WIDTH)

    class Sum(Behind):
        def forward(self, x: Tensor, y: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
            return (self.layer(x) + y).sum(-1)

    model = compiled(Sum(torch.relu), x, y)
    assert columns_of(model) == {"batchmatmul": PADDED, "add": WIDTH, "sum": WIDTH}
    assert model.verify(x, y)


@pytest.mark.parametrize("width", [WIDTH - 1, WIDTH + 1])
def test_columns_that_are_no_whole_sticks_stay_as_they_are(width: int) -> None:
    torch.manual_seed(0)
    model, x = Behind(torch.relu), torch.randn(64, DEPTH)
    model.layer = nn.Linear(DEPTH, width, bias=False)
    made = compiled(model, x)
    assert columns_of(made)["batchmatmul"] in (width, *range(64, width, 64))
    assert made.verify(x)
