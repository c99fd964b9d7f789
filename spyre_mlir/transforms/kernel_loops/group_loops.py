"""Loops around groups of kernels: their predicted time, and the loops themselves in place of the group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf, isfinite

from xdsl.ir import Operation, SSAValue

from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.hints import HintError
from spyre_mlir.errors import LoweringError
from spyre_mlir.planning.divisions import WIDTH, divide_within
from spyre_mlir.planning.trips import TripSpan
from spyre_mlir.transforms.kernel_loops.row_groups import KnownRows, OpRows, RowGroup
from spyre_mlir.transforms.kernel_loops.running_sums import RunningSum
from spyre_mlir.transforms.kernel_loops.tiled_body import TiledBody, put_around
from spyre_mlir.transforms.kernel_loops.trials import InnerLoop, Trial, local_operands
from spyre_mlir.transforms.kernel_plans.divided_blocks import divide_block, move_to
from spyre_mlir.transforms.kernel_plans.kernel_choices import KernelChoices
from spyre_mlir.transforms.kernel_plans.plan_record import PlanRecord
from spyre_mlir.transforms.plan_notes.notes import LoopNote

KEEPS_WIDE = "keeps a widened weight out of device memory"
TRIAL_WIDTH = 6  # of the search for divisions while a loop is tried


@dataclass(frozen=True)
class PutNest:
    """Loops that were put around kernels.

    Attributes:
        ops: the kernels, before any loop.
        over: by kernel, its loops that these go over.
        note: what is said of the loops.
    """

    ops: Sequence[kernel.KernelOp]
    over: Sequence[tuple[str, ...]]
    note: LoopNote


@dataclass
class GroupLoops:
    """Builds loops around groups of kernels, to price them or to keep them.

    Attributes:
        choices: what each kernel may do.
        record: of what is kept.
        rows: facts of kernels that groups share; forgotten when kernels move into a loop.
        nests: the loops that were put, in order.
    """

    choices: KernelChoices
    record: PlanRecord
    rows: KnownRows = field(default_factory=dict[Operation, OpRows])
    nests: list[PutNest] = field(default_factory=list[PutNest])

    def us(self, trial: Trial, most_us: float) -> float | None:
        """Predicted time of a group in loops; None if its kernels cannot be divided then, or it is longer than that."""
        try:
            return self._us(trial, most_us)
        except (LoweringError, HintError):
            return None

    def check(self, trial: Trial) -> None:
        """Raise the error that keeps kernels from running in a loop, if there is one.

        Raises:
            LoweringError: a kernel cannot be divided there.
            HintError: it cannot be divided so, or its buffers cannot be where a hint wants them.
        """
        self._us(trial, inf)

    def _us(self, trial: Trial, most_us: float) -> float | None:
        total = 0.0
        for span in trial.spans:
            us = self._loop_us(trial.group, span, trial.inner, most_us - total)
            if us is None:
                return None
            total += us
        return total

    def _loop_us(self, group: RowGroup, span: TripSpan, inner: InnerLoop | None, most_us: float) -> float | None:
        body = TiledBody(group, span)
        try:
            if inner is None:
                return self._trips_us(body.kernels, span.trips, most_us, body.total)
            within = body.within(inner.loops)
            if within is None:
                return None
            second = TiledBody(within, TripSpan.of_all(inner.trips))
            try:
                return self._trips_us(second.kernels, span.trips * inner.trips, most_us, body.total)
            finally:
                second.drop()
        finally:
            body.drop()

    def _trips_us(
        self, kernels: Sequence[kernel.KernelOp], trips: int, most_us: float, total: RunningSum | None
    ) -> float | None:
        around = () if total is None else total.around
        for op in (*kernels, *around):
            self.choices.divide(op)
        once = most_us / trips - self.choices.parameters.trip_fixed_us
        sequence, buffers = self.choices.sequence(kernels, totals=_added_to(total, kernels))
        # A widened weight takes most of the scratchpads: few of the quickest combinations have a way on.
        width = WIDTH if any(k.wished for k in sequence) else TRIAL_WIDTH
        found = divide_within(sequence, once, self.choices.prices, width)
        if found is None:
            return None
        held = {buffers[number] for number in found.local}
        outside = sum([self.choices.usual_us(*pair) for pair in zip(around, local_operands(around, held), strict=True)])
        return trips * (found.us + self.choices.parameters.trip_fixed_us) + outside

    def put(self, plan: Trial, us: float, why: str = "") -> None:
        """Put the loops in place of the group, and divide their body.

        Args:
            plan: the loops.
            us: their predicted time.
            why: the reason for them, if it is not that time.
        """
        over: list[tuple[str, ...]] = [(name,) for name in plan.group.loops]
        self.record.taken |= dict.fromkeys(plan.group.ops, (plan.told().loops, len(plan.group.ops)))
        for body in self._put_around(plan.group, plan.spans):
            inner, total = body, body.total
            if plan.inner is not None and (within := body.within(plan.inner.loops)) is not None:
                for source, name in zip(body.sources, within.loops, strict=True):
                    over[source] = plan.group.loops[source], name
                (inner,) = self._put_around(within, [TripSpan.of_all(plan.inner.trips)])
            for op in (*inner.kernels, *(() if total is None else total.around)):
                self.choices.divide(op)
            divide_block(inner.block, self.choices, self.record, _added_to(total, inner.kernels))
            if total is not None and kernel.device_tensor(total.value).space == "lx":
                if total.divide_around():
                    self.choices.fixed.update(total.around)
                else:
                    move_to(total.value, "hbm")
        why = why or (KEEPS_WIDE if plan.wide_us else "")
        alone_us = plan.usual_us - plan.wide_us
        within_trips = 1 if plan.inner is None else plan.inner.trips
        note = LoopNote(plan.spans, within_trips, us, alone_us if isfinite(alone_us) else None, why)
        self.nests.append(PutNest(plan.group.ops, over, note))

    def _put_around(self, group: RowGroup, spans: Sequence[TripSpan]) -> list[TiledBody]:
        bodies = put_around(group, spans, self.record.moved)
        self.rows.clear()
        self.choices.moved()
        return bodies


def _added_to(total: RunningSum | None, kernels: Sequence[kernel.KernelOp]) -> set[SSAValue]:
    """The total of a loop, if its kernels add to all of it."""
    return {op.output for op in kernels if total is not None and op.output is total.value}


__all__ = ["GroupLoops", "PutNest"]
