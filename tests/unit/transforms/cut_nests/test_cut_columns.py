"""Pass `cut-columns`: large products whose results leave the program in the default layout."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from spyre_mlir.compiled import CompiledModel
from spyre_mlir.dialects.spyre.kernel import KernelOp
from spyre_mlir.frontend import import_program
from spyre_mlir.hw.spec import SPYRE
from spyre_mlir.options import CompileOptions
from spyre_mlir.pipeline import lower
from spyre_mlir.universe import make_context

REACH = 700_000


def products(columns: int, reach: int = REACH, inputs: str = "default", rows: int = 4) -> tuple[CompiledModel, Tensor]:
    torch.manual_seed(columns)
    model, x = nn.Linear(200, columns, bias=False), torch.randn(rows, 200)
    program = import_program(model, (x,))
    options = {"place-inputs": {"inputs": inputs}}
    lowered = lower(program.module, make_context(replace(SPYRE, span_bytes=reach)), options=options)
    assert lowered.host_steps == ()
    return CompiledModel(program, lowered, CompileOptions()), x


def columns_of(model: CompiledModel) -> list[int]:
    module = model._module("spyre.kernel")  # pyright: ignore[reportPrivateUsage]
    found = [op for op in module.walk() if isinstance(op, KernelOp) and op.is_product]
    return [next(d.extent for d in op.space.data if d.name == "n") for op in found]


@pytest.mark.parametrize(
    ("columns", "reach", "inputs", "wanted"),
    [
        # 37 sticks of 200 numbers are a prime number: one for each core, and 309 columns are left.
        (37 * 64 - 11, REACH, "default", [2048, 309]),
        # The free result is longer, so that it is divided as a whole.
        (37 * 64 - 11, REACH, "free", [38 * 64]),
        # Even numbers of sticks are halved, and what is in reach stays.
        (38 * 64 - 11, REACH, "default", [38 * 64 - 11]),
        (37 * 64 - 11, 37 * 256 * 128, "default", [37 * 64 - 11]),
        (37 * 64 - 11, 37 * 256 * 128 - 1, "default", [2048, 309]),
    ],
)
def test_columns_are_cut_where_no_core_reaches_the_weight(
    columns: int, reach: int, inputs: str, wanted: list[int]
) -> None:
    assert columns_of(products(columns, reach, inputs)[0]) == wanted


@pytest.mark.parametrize("rows", [1, 5])
def test_the_numbers_agree_with_torch(rows: int) -> None:
    model, x = products(37 * 64 - 11, rows=rows)
    assert len(columns_of(model)) == 2
    assert model.verify(x)
