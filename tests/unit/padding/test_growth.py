"""Two programs for two sizes: which dimensions grow, and what makes them two programs."""

from __future__ import annotations

import pytest
from xdsl.dialects.func import FuncOp

from spyre_mlir.dialects.ir.functions import functions
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.padding.growth import Growth, Pair, growth
from spyre_mlir.text.render import parse_module
from spyre_mlir.universe import make_context

ROWS = """
func.func @main(%x: tensor<SIZEx64xf32>, %w: tensor<64xf32>) -> tensor<SIZEx64xf32> {
  %0 = spyre.loop.nest [d0 = SIZE, d1 = 64] ins(%x[d0, d1] : tensor<SIZEx64xf32>, %w[d1] : tensor<64xf32>)
      -> [d0, d1] : tensor<SIZEx64xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.BODY %a, %b : f32
    spyre.loop.yield %c : f32
  }
  func.return %0 : tensor<SIZEx64xf32>
}
"""


def function(text: str, size: int, body: str = "mulf") -> FuncOp:
    text = text.replace("SIZE", str(size)).replace("BODY", body)
    (main,) = functions(parse_module(text, make_context(), "main.mlir"))
    return main


def grown(larger: FuncOp, smaller: FuncOp, sizes: tuple[int, int] = (70, 8)) -> Growth:
    return growth(Pair(larger, sizes[0], smaller, sizes[1]))


def test_rows_grow_and_columns_do_not() -> None:
    larger = function(ROWS, 70)
    found = grown(larger, function(ROWS, 8))
    nest, _ = larger.body.block.ops
    x, w = larger.body.block.args
    assert (found.of(x), found.of(w), found.of(nest.results[0])) == ({0: 1}, {}, {0: 1})
    assert found.loops[nest] == {"d0": 1}


def test_a_dimension_of_the_same_extent_does_not_grow() -> None:
    larger = function(ROWS, 64)  # as long as a row
    assert grown(larger, function(ROWS, 8), (64, 8)).of(larger.body.block.args[0]) == {0: 1}


def test_an_extent_may_be_a_multiple_of_the_size() -> None:
    """As the pixels of all images are, of which each has two."""
    larger = function(ROWS, 70)
    found = grown(larger, function(ROWS, 8), (35, 4))
    nest, _ = larger.body.block.ops
    assert (found.of(larger.body.block.args[0]), found.loops[nest]) == ({0: 2}, {"d0": 2})


@pytest.mark.parametrize(
    ("smaller", "sizes", "because"),
    [
        (function(ROWS, 8, "addf"), (70, 8), "other steps, or other numbers"),
        (function(ROWS, 8), (35, 5), "an extent is 70 and 8 for the lengths 35 and 5"),
    ],
)
def test_other_programs_are_refused(smaller: FuncOp, sizes: tuple[int, int], because: str) -> None:
    with pytest.raises(UnsupportedError, match=because):
        grown(function(ROWS, 70), smaller, sizes)
