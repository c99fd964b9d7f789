"""Nests that are matmuls, and nests that only look like one."""

from __future__ import annotations

import pytest

from spyre_mlir.dialects.spyre.loop import NestOp
from spyre_mlir.transforms.utils.nests.contractions import is_contraction
from tests.unit.transforms.levels import ops, passed

NEST = """
func.func @main(%x: tensor<4x64xf32>, %y: tensor<8x64xf32>) -> tensor<4x8xf32> {{
  %0 = spyre.loop.nest [m = 4, n = 8, k = 64] ins(%x[m, k] : tensor<4x64xf32>, %y[n, k] : tensor<8x64xf32>)
      -> [m, n] : tensor<4x8xf32> reduce "{combine}" {{
  ^bb0(%p : f32, %q : f32):
    %s = {body} %p, %q : f32
    spyre.loop.yield %s : f32
  }}
  func.return %0 : tensor<4x8xf32>
}}
"""


@pytest.mark.parametrize(
    ("combine", "body", "expected"),
    [
        ("arith.addf", "arith.mulf", True),
        ("arith.addf", "arith.addf", False),
        ("arith.maximumf", "arith.mulf", False),
    ],
)
def test_sums_of_products_are_matmuls(combine: str, body: str, expected: bool) -> None:
    (nest,) = ops(passed(NEST.format(combine=combine, body=body)), NestOp)
    assert is_contraction(nest) is expected


def test_a_nest_without_a_sum_is_none() -> None:
    text = """
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = spyre.loop.nest [m = 4] ins(%x[m] : tensor<4xf32>, %x[m] : tensor<4xf32>) -> [m] : tensor<4xf32> {
      ^bb0(%p : f32, %q : f32):
        %s = arith.mulf %p, %q : f32
        spyre.loop.yield %s : f32
      }
      func.return %0 : tensor<4xf32>
    }
    """
    (nest,) = ops(passed(text), NestOp)
    assert not is_contraction(nest)
