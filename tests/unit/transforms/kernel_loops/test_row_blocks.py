"""Rows of products of narrow weights in blocks, and what follows from them."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.dialects.ir.functions import functions
from spyre_mlir.dialects.spyre.kernel import AllocOp, ComputeOp, ConvertOp, KernelOp, device_tensor
from spyre_mlir.hw.sticks import LinearExpr
from spyre_mlir.text.render import verify_module
from spyre_mlir.transforms.kernel_loops.row_blocks import cut_rows
from spyre_mlir.transforms.kernel_plans.divided_blocks import kernels_in
from spyre_mlir.transforms.plan_notes.kernel_forms import KernelForms
from spyre_mlir.transforms.utils.kernels.widened_weights import is_widened
from tests.unit.transforms.levels import ops, passed


def product(rows: int, *, weight: str = "f8E4M3FN", columns: int = 256) -> ModuleOp:
    """Rows times a weight, then an exponential of each element."""
    made = f"""
func.func @main(%x: tensor<{rows}x64xf16>,
                %w: tensor<{columns}x64x{weight}> {{aten.kind = "parameter", aten.name = "w"}})
    -> tensor<{rows}x{columns}xf16> {{
  %0 = spyre.loop.nest [d0 = {columns}, d1 = 64] ins(%w[d0, d1] : tensor<{columns}x64x{weight}>)
      -> [d0, d1] : tensor<{columns}x64xf16> {{
  ^bb0(%a: {weight}):
    spyre.loop.yield %a : {weight}
  }}
  %1 = spyre.loop.nest [m = {rows}, n = {columns}, k = 64]
      ins(%x[m, k] : tensor<{rows}x64xf16>, %0[n, k] : tensor<{columns}x64xf16>)
      -> [m, n] : tensor<{rows}x{columns}xf16> reduce "arith.addf" {{
  ^bb0(%a: f16, %b: f16):
    %p = arith.mulf %a, %b : f16
    spyre.loop.yield %p : f16
  }}
  %2 = spyre.loop.nest [m = {rows}, n = {columns}] ins(%1[m, n] : tensor<{rows}x{columns}xf16>)
      -> [m, n] : tensor<{rows}x{columns}xf16> {{
  ^bb0(%a: f16):
    %e = math.exp %a : f16
    spyre.loop.yield %e : f16
  }}
  func.return %2 : tensor<{rows}x{columns}xf16>
}}
"""
    return passed(made, "convert-spyre-loop-to-spyre-kernel")


def cut(module: ModuleOp) -> list[KernelOp]:
    (function,) = functions(module)
    cut_rows(function.body.block, is_widened, KernelForms(kernels_in(function.body.block)))
    verify_module(module)
    return ops(module, KernelOp)


def test_two_blocks_share_the_conversion_and_fill_one_result() -> None:
    module = product(2048)
    kernels = cut(module)
    assert [type(op) for op in kernels] == [ConvertOp, *[ComputeOp] * 4]
    assert [op.space.extents["m"] for op in kernels[1:]] == [1024] * 4
    rows = [op.maps.data[0].data[0] for op in kernels[1:3]]
    assert rows == [LinearExpr.of("m"), LinearExpr.of("m").shifted(1024)]
    first, second, *exponentials = kernels[1:]
    # A buffer between for each block, of its rows alone; both blocks are in one result.
    assert [op.inputs[0] for op in exponentials] == [first.output, second.output]
    assert exponentials[0].output is exponentials[1].output
    shapes = [device_tensor(op.result).shape for op in ops(module, AllocOp)]
    assert shapes.count((1024, 256)) == 2 and shapes.count((2048, 256)) == 1


def test_blocks_are_as_few_as_a_core_holds() -> None:
    """A core has 131,072 elements of a result: 1,024 rows of the 128 columns in a stick."""
    assert len(cut(product(1024))) == 3
    assert [op.space.extents["m"] for op in cut(product(3072))[1:4]] == [1024] * 3
    # 1,034 rows are two blocks of 517.
    assert [op.space.extents["m"] for op in cut(product(1034))[1:]] == [517] * 4


def test_products_of_wide_weights_stay_whole() -> None:
    assert [op.space.extents["m"] for op in cut(product(2048, weight="f16")) if op.is_product] == [2048]
