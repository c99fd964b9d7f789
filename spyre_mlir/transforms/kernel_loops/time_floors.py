"""Times that no division of kernels beats, in a trip of some loops or in any: what cannot gain need not be built.

Decision: docs/decisions/0210-loops-are-priced-when-they-promise-most.md
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

from xdsl.ir import SSAValue

from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.transforms.kernel_loops.repeated_copies import repeats
from spyre_mlir.transforms.kernel_loops.trials import Trial, local_operands
from spyre_mlir.transforms.kernel_plans.kernel_choices import KernelChoices

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
    _trips: dict[Hashable, float] = field(default_factory=dict[Hashable, float])

    def us(self, ops: Sequence[kernel.KernelOp], internal: Container[SSAValue]) -> float:
        """Return the least time of kernels in any loops, if some buffers stay in the scratchpads throughout."""
        return sum([self.kernel_us(op, local) for op, local in zip(ops, local_operands(ops, internal), strict=True)])

    def hopes_us(
        self, ops: Sequence[kernel.KernelOp], times: Sequence[float], internal: Container[SSAValue]
    ) -> list[float]:
        """Return for each kernel what loops around any kernels from it on can save at most of their times."""
        return list(accumulate(reversed(self.saved_us(ops, times, internal))))[::-1]

    def saved_us(
        self, ops: Sequence[kernel.KernelOp], times: Sequence[float], internal: Container[SSAValue]
    ) -> list[float]:
        """Return for each kernel what loops can save at most of its time, if some buffers stay in the scratchpads."""
        return [max(0.0, us - self.us([op], internal)) for op, us in zip(ops, times, strict=True)]

    def kernel_us(self, op: kernel.KernelOp, local: frozenset[int]) -> float:
        """Return the least time of a kernel in any loops, if some operands stay in the scratchpads throughout."""
        key = op, local
        if (known := self._known.get(key)) is None:
            known = self._known[key] = 0.0 if repeats(op) else self.choices.floor_us(op, local)
        return known

    def trip_us(self, op: kernel.KernelOp, cuts: Mapping[str, int], local: frozenset[int]) -> float:
        """Return the least time of a kernel in one trip of loops around it.

        Args:
            op: the kernel outside of the loops.
            cuts: into how many equal parts its loops are cut.
            local: operands that may be in the scratchpads.
        """
        key = op, *cuts.items(), local
        if (known := self._trips.get(key)) is None:
            known = self._trips[key] = 0.0 if repeats(op) else self.choices.trip_floor_us(op, cuts, local)
        return known

    def priced(self, trial: Trial) -> Trial:
        """Return a trial with the least time of its kernels in the trips of its loops, which are all alike."""
        (span,), inner, group = trial.spans, trial.inner, trial.group
        trips, once = span.trips, self.choices.parameters.trip_fixed_us
        for number, (op, local) in enumerate(zip(group.ops, trial.held, strict=True)):
            cuts = {group.loops[number]: trips}
            if inner is not None:
                cuts[inner.loops[number]] = inner.trips * cuts.get(inner.loops[number], 1)
            once += self.trip_us(op, cuts, local)
        us = trips * (1 if inner is None else inner.trips) * once * (1 - ROUNDING)
        return replace(trial, least_us=max(us, trial.least_us), held=())


__all__ = ["ROUNDING", "TimeFloors"]
