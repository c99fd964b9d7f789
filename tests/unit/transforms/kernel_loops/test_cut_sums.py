"""Products whose sum is computed in parts, where a core reaches less than a row of blocks of the left operand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, nn
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.scf import ForOp

from spyre_mlir.backend.check import check_path
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.dialects.spyre.kernel import AllocOp, ComputeOp, ConvertOp, KernelOp, device_tensor
from spyre_mlir.dialects.spyre.static_loop import loop_bounds
from spyre_mlir.frontend import import_program
from spyre_mlir.hw.spec import SPYRE, SpyreSpec
from spyre_mlir.options import CompileOptions
from spyre_mlir.pipeline import Lowered, lower
from spyre_mlir.report.timing import module_timeline
from spyre_mlir.text.render import verify_module
from spyre_mlir.transforms.kernel_loops.cut_sums import PartedSum, parts_of_sum, parts_of_weight, products_of
from spyre_mlir.universe import make_context
from tests.functions import FunctionModel
from tests.unit.transforms.levels import ops as found_ops
from tests.unit.transforms.levels import passed

ROWS, DEPTH, COLUMNS = 1024, 1250, 1024  # 20 blocks of 1,024 sticks, the last with 34 elements
# Five blocks: four times 131,072 bytes, and a core's rows in the last one. Of what the parts make, 2 MiB each, two do
# not fit all scratchpads together.
SMALL = replace(SPYRE, span_bytes=650_000, lx_usable_bytes=100_000)


def random(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def lowered(spec: SpyreSpec = SMALL, *, loops: bool = True) -> tuple[CompiledModel, tuple[Tensor, ...], Lowered]:
    args = random(ROWS, DEPTH), random(DEPTH, COLUMNS)
    program = import_program(FunctionModel(torch.matmul), args)
    levels = lower(program.module, make_context(spec), options={"plan": {"loops": loops}})
    return CompiledModel(program, levels, CompileOptions()), args, levels


def large(*, loops: bool = True) -> Lowered:
    """A product with 1.3 GB of rows, and what follows it row by row."""
    with torch.device("meta"):
        model, x = nn.Sequential(nn.Linear(5120, 1024), nn.ReLU()).half(), torch.empty(131_072, 5120).half()
    return lower(import_program(model, (x,)).module, make_context(), options={"plan": {"loops": loops}})


def products(levels: Lowered) -> list[ComputeOp]:
    return [op for op in levels.modules["spyre.kernel"].walk() if isinstance(op, ComputeOp) and op.is_product]


def test_parts_of_a_sum_are_eagers_product(tmp_path: Path) -> None:
    made, args, levels = lowered()
    found = products(levels)
    assert [op.space.extents["k"] for op in found] == [320, 320, 320, 1250 - 3 * 320]
    assert [op.space_splits()["k"] for op in found] == [1, 1, 1, 1]
    assert (outcome := made.verify(*args)), str(outcome)
    assert made.accuracy(*args).worst < 0.01
    made.save(tmp_path / "bundle")
    assert [
        finding for finding in check_path(tmp_path / "bundle", make_context(SMALL)) if finding.severity == "error"
    ] == []


def test_what_the_parts_make_stays_in_the_scratchpads() -> None:
    """Four sums and what follows them in loops: the last kernel alone writes to device memory, and none copies."""
    around = next(op for op in large().modules["spyre.kernel"].walk() if isinstance(op, ForOp))
    assert loop_bounds(around).trips > 1
    inside = [op for op in around.walk() if isinstance(op, ComputeOp)]
    parts = ["batchmatmul", *["batchmatmul", "add"] * 4]
    assert [op.function_name for op in inside] == [*parts, "add", "relufwd"]
    assert [op.tensors[-1].space for op in inside] == ["lx"] * 10 + ["hbm"]


def test_it_gains_what_the_divided_sum_loses() -> None:
    cut, divided = large(), large(loops=False)
    assert [op.space_splits()["k"] > 1 for op in products(divided)] == [True]
    after, before = (module_timeline(levels.modules["superdsc"], "calibrated").total_us for levels in (cut, divided))
    assert after < 0.6 * before


def test_products_within_reach_have_one_part() -> None:
    _, _, levels = lowered(SPYRE)
    (product,) = products(levels)
    assert parts_of_sum(product, SPYRE) == 1


WEIGHT = """
func.func @main(%x: tensor<128x12800xf16>, %w: tensor<4096x12800xf8E4M3FN> {aten.kind = "parameter", aten.name = "w"})
    -> tensor<128x4096xf16> {
  %0 = spyre.loop.nest [d0 = 4096, d1 = 12800] ins(%w[d0, d1] : tensor<4096x12800xf8E4M3FN>)
      -> [d0, d1] : tensor<4096x12800xf16> {
  ^bb0(%a: f8E4M3FN):
    spyre.loop.yield %a : f8E4M3FN
  }
  %1 = spyre.loop.nest [m = 128, n = 4096, k = 12800]
      ins(%x[m, k] : tensor<128x12800xf16>, %0[n, k] : tensor<4096x12800xf16>)
      -> [m, n] : tensor<128x4096xf16> reduce "arith.addf" {
  ^bb0(%a: f16, %b: f16):
    %p = arith.mulf %a, %b : f16
    spyre.loop.yield %p : f16
  }
  func.return %1 : tensor<128x4096xf16>
}
"""


def converted() -> tuple[ModuleOp, ConvertOp, ComputeOp]:
    module = passed(WEIGHT, "convert-spyre-loop-to-spyre-kernel")
    (weight,) = found_ops(module, ConvertOp)
    (product,) = products_of(weight)
    return module, weight, product


def test_a_part_of_a_weight_fits_beside_two_results() -> None:
    """A core has 128 of 4,096 columns: 128 x 12,800 numbers are 3.3 MB, a quarter of them 819 kB, with 2 x 33 kB."""
    _, weight, product = converted()
    assert parts_of_weight(weight, [product], SPYRE) == 4
    assert parts_of_weight(weight, [product], replace(SPYRE, lx_usable_bytes=900_000)) == 4
    assert parts_of_weight(weight, [product], replace(SPYRE, lx_usable_bytes=880_000)) == 5
    assert parts_of_weight(weight, [product], replace(SPYRE, lx_usable_bytes=400_000)) == 1  # too many parts
    assert parts_of_weight(weight, [product], replace(SPYRE, cores_per_card=24)) == 1  # 32 sticks of columns


def test_parts_that_do_not_stay_leave_no_trace() -> None:
    module, weight, product = converted()
    before = str(module)
    parted = PartedSum.put([product], 4, weight)
    verify_module(module)
    assert [op.function_name for op in found_ops(module, KernelOp)] == [
        *["fp8todl16", "batchmatmul"] * 2,
        *["add", "fp8todl16", "batchmatmul"] * 2,
        "add",
    ]
    parted.undo()
    assert str(module) == before


def test_parts_that_stay_leave_no_buffer_of_the_whole_weight() -> None:
    module, weight, product = converted()
    PartedSum.put([product], 2, weight).keep()
    verify_module(module)
    shapes = [device_tensor(op.result).shape for op in found_ops(module, AllocOp)]
    assert shapes.count((4096, 6400)) == 2 and (4096, 12800) not in shapes
