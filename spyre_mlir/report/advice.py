"""Advice on where predicted time goes: a sentence for each cause, with what it costs and what to try."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from spyre_mlir.machine.bundle.host_times import HostStepTime
from spyre_mlir.machine.bundle.timeline import Timeline
from spyre_mlir.report.shares import Share, by_line, moves, moving_us

# A cause that costs less of the time is not worth a sentence.
_WORTH = 0.1
_FEW_CORES = 0.5


@dataclass(frozen=True)
class Advice:
    """One cause.

    Attributes:
        cause: of the time, with its share.
        us: what it costs.
        hint: what to try.
    """

    cause: str
    us: float
    hint: str

    def __str__(self) -> str:
        return f"{self.cause}\n  try: {self.hint}"


def advice(timeline: Timeline) -> list[Advice]:
    """Return the causes that cost a tenth of the time or more, the dearest first."""
    return sorted(_found(timeline), key=lambda one: -one.us)


def _found(timeline: Timeline) -> Iterator[Advice]:
    if steps := [step for step in timeline.host_steps if not step.by_choice]:
        yield _asking(steps)
    total = timeline.kernels_us
    if not total:
        return
    if (moving := moving_us(timeline)) >= _WORTH * total:
        yield _rearranging(timeline, moving, total)
    idle = [k for k in timeline.kernels if k.work.cores < _FEW_CORES * timeline.spec.cores_per_card]
    if (us := sum(k.cost.total for k in idle)) >= _WORTH * total:
        cores = timeline.spec.cores_per_card
        yield Advice(
            f"{us / total:.0%} of the time, {us:.3g} us, passes on fewer than half of the {cores} cores",
            us,
            f"give the kernels more to divide, as by a larger batch: {cores} cores want {cores} rows or sticks",
        )


def _asking(steps: Sequence[HostStepTime]) -> Advice:
    us = sum(step.least_us for step in steps)
    count = "1 step runs" if len(steps) == 1 else f"{len(steps)} steps run"
    return Advice(
        f"{count} on the host: transfers take {us:.3g} us, the host an unknown time",
        us,
        "write these operators with others, or leave them out of what is compiled",
    )


def _rearranging(timeline: Timeline, moving: float, total: float) -> Advice:
    worst: Share = max(by_line(timeline), key=lambda share: share.moving_us)
    in_modules: dict[str, float] = {}
    for kernel in filter(moves, worst.kernels):
        in_modules[kernel.launch.module] = in_modules.get(kernel.launch.module, 0.0) + kernel.cost.total
    module = max(sorted(in_modules), key=in_modules.__getitem__)
    where = f"{worst.name} ({module})" if module else worst.name
    share = f"{moving / total:.0%} of the time, {moving:.3g} us"
    return Advice(
        f"{share}, only rearranges data; most of it, {worst.moving_us:.3g} us, for {where}",
        moving,
        "leave the last dimension in its place, as each transpose or reshape of it changes the layout; "
        "store a weight in the order in which it is read; choose extents that are multiples of 64",
    )
