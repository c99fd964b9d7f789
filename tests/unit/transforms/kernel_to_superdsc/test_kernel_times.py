"""Predicted times of single kernels."""

from __future__ import annotations

from math import inf

import pytest

from spyre_mlir.dialects.spyre.kernel import KernelOp
from spyre_mlir.hw.cost_parameters import CALIBRATED
from spyre_mlir.transforms.kernel_to_superdsc.kernel_times import kernel_us
from tests.unit.transforms.levels import ops, passed


def us_of(extents: list[int]) -> float:
    """The time of an exp on one core of a tensor in device memory."""
    order, names = list(range(len(extents))), [f"d{number}" for number in range(len(extents))]
    tensor = f"!spyre.tensor<{extents} x SEN169_FP16, order {order}, stick {order[-1]}, hbm>"
    loops, index = ", ".join(f"{n} = {e}" for n, e in zip(names, extents, strict=True)), ", ".join(names)
    text = f"""func.func @main() {{
      %a = spyre.kernel.alloc : {tensor}
      %b = spyre.kernel.alloc : {tensor}
      spyre.kernel.compute "exp" [{loops}] ins(%a[{index}] : {tensor}) outs(%b[{index}] : {tensor})
      func.return
    }}"""
    (op,) = ops(passed(text), KernelOp)
    return kernel_us(op, CALIBRATED)


def test_a_kernel_of_twice_the_rows_takes_twice_the_time() -> None:
    assert us_of([2048, 64]) == pytest.approx(2 * us_of([1024, 64]), rel=0.01)


def test_a_kernel_that_no_file_can_hold_takes_for_ever() -> None:
    assert us_of([2] * 7 + [64]) < inf
    assert us_of([2] * 8 + [64]) == inf
