"""Functions know which of their arguments are weights, as far as control flow hands these over unchanged."""

from __future__ import annotations

from xdsl.dialects.func import FuncOp

from spyre_mlir.dialects.argument_notes import kind_of
from spyre_mlir.dialects.ir.handed_notes import hand_down_notes
from spyre_mlir.text.render import parse_module
from spyre_mlir.universe import make_context

WEIGHT = '{aten.kind = "parameter"}'
TEXT = f"""
func.func @main(%h: tensor<2xf32> {WEIGHT}, %x: tensor<3x2xf32> {WEIGHT}, %w: tensor<2xf32> {WEIGHT}, %y: tensor<2xf32>)
    -> tensor<2xf32> {{
  %0 = control.for_loop @step trips 3 carrying 1 slicing 1 (%h, %x, %w, %y) :
    (tensor<2xf32>, tensor<3x2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return %0 : tensor<2xf32>
}}
func.func private @step(%c: tensor<2xf32>, %e: tensor<1x2xf32>, %w: tensor<2xf32>, %y: tensor<2xf32>)
    -> tensor<2xf32> {{
  func.return %c : tensor<2xf32>
}}
"""


def test_weights_that_every_trip_reads_are_weights_of_the_body() -> None:
    """Carried tensors and entries are others in each trip, whatever they begin with."""
    module = parse_module(TEXT, make_context())
    hand_down_notes(module)
    _, step = (op for op in module.ops if isinstance(op, FuncOp))
    assert [kind_of(step, number) for number in range(4)] == [None, None, "parameter", None]
