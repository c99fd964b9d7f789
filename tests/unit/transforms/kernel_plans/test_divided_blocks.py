"""Kernels of a trip that the program has already are divided together, and count in every trip."""

from __future__ import annotations

import pytest

from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.text.render import parse_module
from spyre_mlir.transforms.plan import PlanPass
from spyre_mlir.universe import make_context
from tests.unit.transforms.levels import ops, passed

T = "!spyre.tensor<[8, 128] x SEN169_FP16, order [1, 0], stick 1, hbm>"
H = "!spyre.tensor<[8, 64] x SEN169_FP16, order [1, 0], stick 1, hbm>"


def text(trips: int) -> str:
    """A trip whose second kernel reads both halves of what the first one makes: two sticks of the columns."""
    return f"""
func.func private @steps(%x: {T}, %y: {H}) {{
  %0 = arith.constant 0 : index
  %1 = arith.constant {trips} : index
  %2 = arith.constant 1 : index
  scf.for %i = %0 to %1 step %2 {{
    %3 = spyre.kernel.alloc : {T}
    spyre.kernel.compute "exp" [m = 8, n = 128] ins(%x[m, n] : {T}) outs(%3[m, n] : {T})
    spyre.kernel.compute "mul" [m = 8, n = 64] ins(%3[m, n] : {T}, %3[m, n + 64] : {T}) outs(%y[m, n] : {H})
  }}
  func.return
}}
"""


def test_kernels_of_a_trip_are_divided_together() -> None:
    apart = ops(passed(text(9), "divide-work"), kernel.ComputeOp)
    assert [[d.split for d in op.space.data] for op in apart] == [[8, 2], [8, 1]]
    module = passed(text(9), "plan")
    assert [[d.split for d in op.space.data] for op in ops(module, kernel.ComputeOp)] == [[8, 1], [8, 1]]
    assert [kernel.device_tensor(op.result).space for op in ops(module, kernel.AllocOp)] == ["lx"]


def test_every_trip_counts() -> None:
    def us(trips: int) -> float:
        context = make_context()
        (found,) = PlanPass().predicted_us(context, parse_module(text(trips), context))
        assert found is not None
        return found

    assert us(9) == pytest.approx(9 * us(1))
    assert us(1) > 0.69  # what the cost model takes for a trip
