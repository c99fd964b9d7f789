"""Rows that the cores cannot share equally: parts counted by hand, and values as torch has them at every level."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import spyre_mlir
from spyre_mlir.choices import InputLayouts
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.dialects.spyre.kernel import KernelOp
from spyre_mlir.dialects.spyre.loop import EmptyOp, NestOp
from spyre_mlir.frontend import import_program
from spyre_mlir.options import CompileOptions
from spyre_mlir.pipeline import lower
from spyre_mlir.universe import make_context
from tests.functions import FunctionModel
from tests.unit.transforms.levels import ops, passed

# The maximum of each row, what is left of the row, and its sum: a chain that shares its rows.
CHAIN = """
func.func @main(%x: tensor<{rows}x{columns}xf32>) -> tensor<{rows}x1xf32> {{
  %0 = spyre.loop.nest [m = {rows}, r = {columns}] ins(%x[m, r] : tensor<{rows}x{columns}xf32>)
    -> [m, 0] : tensor<{rows}x1xf32> reduce "arith.maximumf" {{
  ^bb0(%a: f32):
    spyre.loop.yield %a : f32
  }}
  %1 = spyre.loop.nest [m = {rows}, n = {columns}]
    ins(%x[m, n] : tensor<{rows}x{columns}xf32>, %0[m, 0] : tensor<{rows}x1xf32>)
    -> [m, n] : tensor<{rows}x{columns}xf32> {{
  ^bb0(%b: f32, %c: f32):
    %d = arith.subf %b, %c : f32
    spyre.loop.yield %d : f32
  }}
  %2 = spyre.loop.nest [m = {rows}, r = {columns}] ins(%1[m, r] : tensor<{rows}x{columns}xf32>)
    -> [m, 0] : tensor<{rows}x1xf32> reduce "arith.addf" {{
  ^bb0(%e: f32):
    spyre.loop.yield %e : f32
  }}
  func.return %2 : tensor<{rows}x1xf32>
}}
"""


# A nest that copies %x to all of a tensor.
FILL = """  %{new} = spyre.loop.nest [i = 67, j = 256] ins(%x[i, j] : tensor<67x256xf32>)
    into %{old} -> [i, j] : tensor<67x256xf32> {{
  ^bb0(%{new}0: f32):
    spyre.loop.yield %{new}0 : f32
  }}
"""


def random(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape))).to(dtype)


def compiled(model: nn.Module, *args: Tensor, **options: Any) -> CompiledModel:
    made = spyre_mlir.compile(model, args, **options)
    assert isinstance(made, CompiledModel)
    return made


def rows_of(nests: list[NestOp]) -> list[int]:
    return [nest.space.data[0].extent for nest in nests]


@pytest.mark.parametrize(
    ("rows", "columns", "parts"),
    [
        (67, 256, [64, 64, 64, 64, 3, 3, 3]),  # a copy of the first rows, which two nests read, comes first
        (97, 256, [96, 96, 96, 96, 1, 1, 1]),
        (64, 256, [64, 64, 64]),  # two rows a core
        (48, 256, [48, 48, 48]),  # 24 cores
        (31, 256, [31, 31, 31]),  # 31 cores
        (67, 4, [67, 67, 67]),  # too little to gain
        (2039, 256, [2039, 2039, 2039]),  # 32 sticks of rows
    ],
)
def test_rows_are_cut_where_that_gains(rows: int, columns: int, parts: list[int]) -> None:
    text = CHAIN.format(rows=rows, columns=columns)
    module = passed(text, "cut-rows")
    assert rows_of(ops(module, NestOp)) == parts
    assert len(ops(module, EmptyOp)) == (len(parts) > 3)


def test_what_is_read_inside_and_outside_stays_whole() -> None:
    text = CHAIN.format(rows=67, columns=256).replace("return %2 : tensor<67x1xf32>", "return %2, %0 : !t, !t")
    text = "!t = tensor<67x1xf32>\n" + text.replace("-> tensor<67x1xf32> {", "-> (!t, !t) {")
    # The maximum is a result, and the difference reads it. The sum of the differences is cut alone.
    assert rows_of(ops(passed(text, "cut-rows"), NestOp)) == [67, 67, 64, 3]


def test_what_is_read_is_read_before_it_changes() -> None:
    """The nests of a group move to its last one; a nest in between that overwrites what the first reads ends it."""
    text = (
        CHAIN.format(rows=67, columns=256)
        .replace("%1 = ", FILL.format(new="g", old="f").lstrip() + "  %1 = ", 1)
        .replace("ins(%x[m, r]", "ins(%f[m, r]", 1)
    )
    text = text.replace(
        "  %0 = ",
        "  %whole = spyre.loop.empty : tensor<67x256xf32>\n" + FILL.format(new="f", old="whole") + "  %0 = ",
        1,
    )
    nests = ops(passed(text, "cut-rows"), NestOp)
    assert rows_of(nests) == [67, 64, 3, 67, 67, 64, 3]


# Reads one row of the sums.
ONE_ROW = """
  %3 = spyre.loop.nest [k = 64] ins(%2[{row}, 0] : tensor<197x1xf32>) -> [k] : tensor<64xf32> {{
  ^bb0(%f: f32):
    spyre.loop.yield %f : f32
  }}
  func.return %3 : tensor<64xf32>
"""


@pytest.mark.parametrize(("row", "kept"), [(0, 192), (191, 192), (192, 5), (196, 5)])
def test_a_part_that_nothing_reads_is_not_computed(row: int, kept: int) -> None:
    text = CHAIN.format(rows=197, columns=192).replace("-> tensor<197x1xf32> {\n  %0", "-> tensor<64xf32> {\n  %0")
    text = text.replace("  func.return %2 : tensor<197x1xf32>\n", ONE_ROW.format(row=row))
    module = passed(text, "cut-rows")
    chain = [nest for nest in ops(module, NestOp) if nest.space.data[0].name == "m"]
    assert {nest.space.data[0].extent for nest in chain} == {kept} and len(chain) == 3


@pytest.mark.parametrize("inputs", ["default", "free"])
def test_a_hint_keeps_rows_together(inputs: InputLayouts) -> None:
    """Readers of the same rows beside the hinted op go through them as they lie: no kernel lays a copy of them out."""

    def function(x: Tensor) -> Tensor:
        with spyre_mlir.hint(division={"0": 1}):
            y = x.amax(1, keepdim=True)
        return x - y

    def extents(model: Callable[..., Any]) -> set[int]:
        module = import_program(FunctionModel(model), (random(67, 256),)).module
        options = CompileOptions(inputs=inputs).passes()
        kernels = ops(lower(module, make_context(), options=options).modules["spyre.kernel"], KernelOp)
        return {op.space.data[0].extent for op in kernels}

    assert extents(function) == {67}
    assert extents(softmax) == {64, 3}


def softmax(x: Tensor) -> Tensor:
    return functional.softmax(x, -1)


def standardised(x: Tensor) -> Tensor:
    return functional.layer_norm(x, (x.shape[-1],))


def centred(x: Tensor) -> Tensor:
    return (x - x.mean(0, keepdim=True)).square()


def softmax_of_columns(x: Tensor) -> Tensor:
    return softmax(x.t())


def softmax_of_a_slice(x: Tensor) -> Tensor:
    return softmax(x[2:69, 1:])


def read_by_a_product(x: Tensor) -> Tensor:
    return standardised(x) @ x.t()


def several(x: Tensor) -> tuple[Tensor, Tensor]:
    y = functional.log_softmax(x, -1)
    return y, y.argmax(-1)


CASES: dict[str, tuple[Callable[..., Any], tuple[int, ...], torch.dtype]] = {
    "softmax": (softmax, (67, 256), torch.float16),
    "layer norm": (standardised, (67, 256), torch.float16),
    "columns off the stick": (softmax, (67, 300), torch.float32),
    "a batch": (softmax, (2, 101, 200), torch.float32),
    "columns": (centred, (300, 67), torch.float32),
    "a transposed input": (softmax_of_columns, (300, 67), torch.float32),
    "a slice": (softmax_of_a_slice, (70, 260), torch.float32),
    "several results": (several, (67, 256), torch.float32),
    "read by a product": (read_by_a_product, (67, 256), torch.float32),
}


@pytest.mark.parametrize("name", CASES)
def test_every_level_agrees_with_torch(name: str) -> None:
    function, shape, dtype = CASES[name]
    x = random(*shape, dtype=dtype)
    model = compiled(FunctionModel(function), x)
    assert (outcome := model.verify(x)), str(outcome)


def test_softmax_is_within_reach_of_its_bound() -> None:
    """67 rows of 512 bytes are read once and written once at 150 GB/s; one core of 32 took 16 times as long."""
    timeline = compiled(FunctionModel(softmax), random(67, 256, dtype=torch.float16)).report().timeline
    least = 2 * 67 * 512 / 150_000
    assert timeline is not None
    assert least <= timeline.total_us <= 1.5 * least
