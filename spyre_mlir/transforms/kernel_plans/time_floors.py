"""Times that no division of kernels beats, in a trip of some loops or in any: what cannot gain need not be built."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, field

from xdsl.ir import SSAValue

from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.transforms.kernel_plans.kernel_choices import KernelChoices
from spyre_mlir.transforms.kernel_plans.repeated_copies import repeats
from spyre_mlir.transforms.kernel_plans.row_groups import RowGroup
from spyre_mlir.transforms.kernel_plans.trials import InnerLoop, local_operands

ROUNDING = 1e-9


@dataclass
class TimeFloors:
    """Lower bounds of the predicted time of kernels, in microseconds.

    Attributes:
        choices: what each kernel may do.
    """

    choices: KernelChoices
    _known: dict[tuple[kernel.KernelOp, frozenset[int]], float] = field(
        default_factory=dict[tuple[kernel.KernelOp, frozenset[int]], float]
    )

    def us(self, ops: Sequence[kernel.KernelOp], internal: Container[SSAValue]) -> float:
        """Return the least time of kernels in any loops, if some buffers stay in the scratchpads throughout."""
        held = zip(ops, local_operands(ops, internal), strict=True)
        return sum([self._kernel_us(op, local) for op, local in held if not repeats(op)])

    def in_loops_us(
        self, group: RowGroup, held: Sequence[frozenset[int]], trips: int, inner: InnerLoop | None
    ) -> float:
        """Return a time that no division of a group in loops beats.

        Args:
            group: the kernels.
            held: operands of each kernel that the scratchpads may hold in a trip.
            trips: of the loop around the group.
            inner: the loop inside of it, if there is one.
        """
        once, within = self.choices.parameters.trip_fixed_us, 1 if inner is None else inner.trips
        for number, (op, loop, local) in enumerate(zip(group.ops, group.loops, held, strict=True)):
            if repeats(op):
                continue
            cuts = {loop: trips}
            if inner is not None:
                cuts[inner.loops[number]] = within * cuts.get(inner.loops[number], 1)
            once += self.choices.trip_floor_us(op, cuts, local)
        return trips * within * once * (1 - ROUNDING)

    def _kernel_us(self, op: kernel.KernelOp, local: frozenset[int]) -> float:
        """The same of one kernel, which many groups may have."""
        if (known := self._known.get((op, local))) is None:
            known = self._known[op, local] = self.choices.floor_us(op, local)
        return known


__all__ = ["TimeFloors"]
