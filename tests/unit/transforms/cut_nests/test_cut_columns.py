"""Pass `cut-columns`: products whose columns no number of cores divides finely enough, for their reach or for time."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

import spyre_mlir
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.dialects.spyre.kernel import KernelOp
from spyre_mlir.frontend import import_program
from spyre_mlir.hw.spec import SPYRE
from spyre_mlir.options import CompileOptions
from spyre_mlir.pipeline import lower
from spyre_mlir.transforms.cut_nests import cut_columns
from spyre_mlir.transforms.kernel_plans.shared_weights import Columns
from spyre_mlir.universe import make_context

REACH = 700_000


def products(columns: int, reach: int = REACH, inputs: str = "default", rows: int = 4) -> tuple[CompiledModel, Tensor]:
    torch.manual_seed(columns)
    model, x = nn.Linear(200, columns, bias=False), torch.randn(rows, 200)
    program = import_program(model, (x,))
    # No product takes long, so that reach alone counts.
    options = {"place-inputs": {"inputs": inputs}, "cut-columns": {"numbers": ("hbm_gb_per_s=1e6",)}}
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


class Layer(nn.Module):
    """Two products with 25 sticks of columns, and functions of their results."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(320, 1600), nn.Linear(1600, 1600)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(torch.relu(self.up(x))) * 2


def test_every_level_of_cut_products_is_eager() -> None:
    torch.manual_seed(0)
    model, x = Layer().half(), torch.randn(64, 320).half()
    compiled = spyre_mlir.compile(model, (x,))
    assert columns_of(compiled) == [1024, 576, 1024, 576]
    assert compiled.verify(x)


def test_a_plan_with_two_products_is_predicted_to_be_quicker(monkeypatch: pytest.MonkeyPatch) -> None:
    with torch.device("meta"):
        model, x = nn.Linear(4544, 4544, bias=False).half(), torch.zeros(256, 4544).half()
    cut = spyre_mlir.compile(model, (x,), cache=False)
    monkeypatch.setattr(cut_columns, "quicker_columns", lambda size, *_, **__: Columns(0, size.columns))
    whole = spyre_mlir.compile(model, (x,), cache=False)
    assert columns_of(cut) == [4096, 448] and columns_of(whole) == [4544]
    assert cut.timeline().total_us * 2 < whole.timeline().total_us


@pytest.mark.parametrize(
    "model",
    [
        nn.Linear(1600, 1600, bias=False),  # in float32: numbers of the weight are in DL16 on the card all the same
        nn.Linear(1600, 1600, bias=False, dtype=torch.bfloat16),
    ],
)
def test_weights_of_wider_types_are_cut(model: nn.Linear) -> None:
    x = torch.randn(64, 1600).to(model.weight.dtype)
    assert len(columns_of(spyre_mlir.compile(model, (x,)))) == 2
