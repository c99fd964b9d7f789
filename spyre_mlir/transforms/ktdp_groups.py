"""Kernels that one KTIR function may hold: cores wait for one another only where a function ends.

The cores of a function run in no order. So a kernel may follow another in one function only if no core touches what
another core wrote, or writes what another core touches; the next function starts when all cores are done.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from spyre_mlir.dialects.spyre.attributes import DeviceTensorType
from spyre_mlir.dialects.spyre.core_view import CoreView
from spyre_mlir.dialects.spyre.kernel import KernelOp, device_tensor
from spyre_mlir.hw.sticks import StickError


@dataclass
class Group:
    """The kernels of one function.

    Attributes:
        cores: how many run it.
        kernels: in order.
    """

    cores: int
    kernels: list[KernelOp] = field(default_factory=list[KernelOp])

    def takes(self, op: KernelOp) -> bool:
        """Whether a kernel may follow."""
        return cores_of(op) == self.cores and not any(_clash(earlier, op) for earlier in self.kernels)

    def buffers(self) -> set[SSAValue]:
        """What the kernels touch."""
        return {v for op in self.kernels for v in op.operands}


def cores_of(op: KernelOp) -> int:
    """Cores over which a kernel is divided."""
    return prod(op.space_splits().values())


def grouped(kernels: Sequence[KernelOp]) -> list[Group]:
    """The kernels in order, as few functions as may be without changing the order."""
    groups = list[Group]()
    for op in kernels:
        if not groups or not groups[-1].takes(op):
            groups.append(Group(cores_of(op)))
        groups[-1].kernels.append(op)
    return groups


def spill(groups: Sequence[Group]) -> list[SSAValue]:
    """Puts buffers of the scratchpads that several functions touch into device memory, and returns them.

    What a scratchpad holds when a function ends is not said anywhere.
    """
    touched = [g.buffers() for g in groups]
    found = dict.fromkeys(
        v
        for group in groups
        for op in group.kernels
        for v in op.operands
        if device_tensor(v).space == "lx" and sum(v in t for t in touched) > 1
    )
    moved = list[SSAValue]()
    for value in found:
        kind = DeviceTensorType(replace(device_tensor(value), space="hbm"))
        moved.append(Rewriter.replace_value_with_new_type(value, kind))
    return moved


def _clash(earlier: KernelOp, later: KernelOp) -> bool:
    """Whether a core would need another core to have finished the earlier kernel."""
    for number, value in enumerate(earlier.operands):
        for other, same in enumerate(later.operands):
            if same is not value or (number < len(earlier.inputs) and other < len(later.inputs)):
                continue
            views = [*_view(earlier, number), *_view(later, other)]
            if len(views) < 2 or views[0] != views[1]:
                return True
    return False


def _view(op: KernelOp, number: int) -> Iterator[CoreView]:
    """The slices of an operand, if each core has its own."""
    try:
        yield op.core_view(number)
    except StickError:
        return


__all__ = ["Group", "cores_of", "grouped", "spill"]
