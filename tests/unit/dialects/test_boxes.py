"""Parts of tensors, by hand."""

from __future__ import annotations

import pytest

from spyre_mlir.dialects.boxes import Box, box_of, overlap
from spyre_mlir.dialects.spyre.loop import NestOp
from tests.unit.transforms.levels import ops, passed

NEST = """
func.func @main(%x: tensor<8x64xf32>) -> tensor<3x4xf32> {
  %0 = spyre.loop.nest [i = 3, j = 4] ins(%x[i * 2 + 1, 60 - j * 16] : tensor<8x64xf32>) -> [i, j] : tensor<3x4xf32> {
  ^bb0(%p : f32):
    spyre.loop.yield %p : f32
  }
  func.return %0 : tensor<3x4xf32>
}
"""


def test_a_box_reaches_from_the_first_to_the_last_index() -> None:
    """Rows 1, 3 and 5; columns 60, 44, 28 and 12."""
    (nest,) = ops(passed(NEST), NestOp)
    assert box_of(nest, nest.input_maps[0]) == ((1, 5), (12, 60))
    assert box_of(nest, nest.output_map) == ((0, 2), (0, 3))


@pytest.mark.parametrize(
    ("other", "shared"),
    [
        (((1, 5), (12, 60)), True),
        (((5, 7), (60, 63)), True),  # one corner
        (((6, 7), (12, 60)), False),
        (((0, 7), (0, 11)), False),
    ],
)
def test_parts_overlap_where_they_do_in_every_dimension(other: Box, shared: bool) -> None:
    one = ((1, 5), (12, 60))
    assert overlap(one, other) is shared
    assert overlap(other, one) is shared
