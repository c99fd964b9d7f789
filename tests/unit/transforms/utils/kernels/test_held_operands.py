"""Operands that scratchpads may hold, of the five kernels of a softmax: the largest, less it, exp, sum, quotient."""

from __future__ import annotations

from spyre_mlir.dialects.spyre.kernel import KernelOp
from spyre_mlir.transforms.utils.kernels.held_operands import buffers_of, copied_inputs, may_hold
from tests.unit.transforms.levels import ops, passed
from tests.unit.transforms.test_place_lx import softmax

KERNELS = ops(passed(softmax(512, 1024), "divide-work"), KernelOp)


def test_an_input_that_several_kernels_read_may_be_copied() -> None:
    x = KERNELS[0].operands[0]
    assert copied_inputs(KERNELS) == {x}
    assert copied_inputs(KERNELS[:1]) == set(), "one reads it"
    assert may_hold(x, written=False) and not may_hold(x, written=True)


def test_buffers_between_kernels_are_their_own() -> None:
    results = [op.output for op in KERNELS]
    assert buffers_of(KERNELS) == set(results[:-1]), "the last one leaves the program"
    assert buffers_of(KERNELS[:2]) == {results[0]}, "kernels behind read the second"
    assert all(may_hold(value, written=True) for value in results)
