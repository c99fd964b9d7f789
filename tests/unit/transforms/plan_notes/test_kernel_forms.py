"""Kernels in whose place others stand, in one copy of a program and in another."""

from __future__ import annotations

from collections.abc import Sequence

from spyre_mlir.dialects.spyre.kernel import KernelOp
from spyre_mlir.transforms.plan_notes.kernel_forms import KernelForms
from tests.unit.transforms.levels import ops, passed
from tests.unit.transforms.test_place_lx import softmax


def test_what_was_done_to_kernels_is_done_to_the_same_ones_again() -> None:
    """The third becomes two; then one of these and the kernel before are one; the last is gone."""
    first, second, third, fourth, last = ops(passed(softmax(64, 128)), KernelOp)
    others, again = ops(passed(softmax(64, 128)), KernelOp), list[list[str]]()

    def twice(kernels: Sequence[KernelOp]) -> list[list[KernelOp]]:
        again.append([op.function_name for op in kernels])
        return [[op, op] for op in kernels]

    def joined(kernels: Sequence[KernelOp]) -> list[list[KernelOp]]:
        again.append([op.function_name for op in kernels])
        return [[], *([op] for op in kernels[1:-1]), []]

    forms = KernelForms([first, second, third, fourth, last])
    forms.became([third], [[third, third]], twice)
    forms.became([second, third, last], [[], [third], []], joined)
    assert forms.kernels == [first, third, third, fourth]
    assert forms.again(others) == [others[0], others[2], others[2], others[3]]
    assert again == [["exp"], ["sub", "exp", "realdiv"]]
