"""What loops can save at most."""

from __future__ import annotations

import pytest

from spyre_mlir.dialects.spyre.kernel import KernelOp
from spyre_mlir.hw.spec import SPYRE
from spyre_mlir.transforms.kernel_plans.kernel_choices import KernelChoices
from spyre_mlir.transforms.kernel_plans.time_floors import TimeFloors
from tests.unit.transforms.levels import ops, passed
from tests.unit.transforms.test_place_lx import softmax


def test_what_kernels_from_one_on_may_save() -> None:
    """Kernels that take longer than their floors by 1, 2, 0 and 4 us, and one that takes less than its floor."""
    found = ops(passed(softmax(8192, 1024), "divide-work"), KernelOp)
    floors = TimeFloors(KernelChoices(SPYRE))
    inside = {op.output for op in found[:-1]}
    longer = (1.0, 2.0, 0.0, 4.0, -0.5)
    times = [floors.us([op], inside) + more for op, more in zip(found, longer, strict=True)]
    assert floors.hopes_us(found, times, inside) == pytest.approx([7.0, 6.0, 4.0, 4.0, 0.0])
