"""Pass `plan`: divides kernels over the cores, and puts groups of them into loops, by predicted time.

A group of kernels that share a loop may run in blocks of its rows, so that what they hand to each other fits the
scratchpads; a second loop may go around inside. Of the loops that `planning.trips` proposes, the one that gains the
most is taken if it gains clearly. What is in no loop, and each body, is divided as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.attributes import DeviceTensorType
from spyre_mlir.dialects.target import spec_of
from spyre_mlir.errors import LoweringError
from spyre_mlir.hw.cost_parameters import CALIBRATED
from spyre_mlir.planning.divisions import divide_together
from spyre_mlir.planning.trips import LoopChoice, worth_trying
from spyre_mlir.transforms.divide_work import divide_kernel
from spyre_mlir.transforms.place_lx import without_room
from spyre_mlir.transforms.utils.kernel_choices import KernelChoices, divided
from spyre_mlir.transforms.utils.rebuild import functions
from spyre_mlir.transforms.utils.row_groups import RowGroup, grow
from spyre_mlir.transforms.utils.tiled_body import TiledBody

WORTH_A_LOOK_US = 15.0  # the shortest kernel that was measured: nothing is known of shorter ones
CLEAR_GAIN = 0.05  # of a loop
TRIAL_WIDTH = 6


@dataclass(frozen=True)
class PlanPass(ModulePass):
    """Chooses divisions and loops for the kernels of every function.

    Attributes:
        loops: whether kernels may be put into loops.
    """

    name = "plan"

    loops: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Plan every function of the module."""
        choices = KernelChoices(spec_of(ctx, op))
        for function in functions(op):
            block = function.body.block
            if self.loops:
                put_in_loops(block, choices)
            divide_block(block, choices)
            for alloc in without_room(block, choices.spec):
                _move(alloc.result, "hbm")


def divide_block(block: Block, choices: KernelChoices) -> None:
    """Divide the kernels of a block together, as far as that is predicted to be quicker."""
    ops = [op for op in block.ops if isinstance(op, kernel.KernelOp)]
    kernels, buffers = choices.sequence(ops)
    usual = divide_together([replace(k, candidates=k.candidates[:1]) for k in kernels], spec=choices.spec)
    best = divide_together(kernels, spec=choices.spec)
    if best.us < usual.us:
        for op, found, number in zip(ops, kernels, best.chosen, strict=True):
            op.space = divided(op.space, found.candidates[number].splits)
        for number in best.local:
            if isinstance(buffers[number].owner, kernel.AllocOp):
                _move(buffers[number], "lx")


def _move(buffer: SSAValue, space: Literal["hbm", "lx"]) -> None:
    made = DeviceTensorType(replace(kernel.device_tensor(buffer), space=space))
    Rewriter.replace_value_with_new_type(buffer, made)


@dataclass(frozen=True)
class LoopPlan:
    """A group of kernels in one loop or two.

    Attributes:
        group: the kernels.
        trips: of the loop around them.
        inner: the loop inside of it and its trips, if there is one.
        us: predicted time.
        gain_us: how much shorter that is than without loops.
    """

    group: RowGroup
    trips: int
    inner: tuple[str, int] | None
    us: float
    gain_us: float


def put_in_loops(block: Block, choices: KernelChoices) -> None:
    """Put the groups of kernels of a block into loops that are predicted to gain."""
    kernels = [op for op in block.ops if isinstance(op, kernel.KernelOp)]
    sequence, _ = choices.sequence(kernels)
    flat = divide_together(sequence, spec=choices.spec)
    times = dict(zip(kernels, flat.times, strict=True))
    done = set[Operation]()
    for op in kernels:
        if op in done:
            continue
        plans = [p for group in grow(op, _behind(list(block.ops), op)) if (p := _best(group, times, choices)) is not None]
        if plans:
            best = max(plans, key=lambda plan: plan.gain_us)
            done.update(best.group.ops)
            _install(best, choices)


def _behind(ops: Sequence[Operation], op: Operation) -> Sequence[Operation]:
    return ops[ops.index(op) + 1 :]


def _best(group: RowGroup, times: Mapping[kernel.KernelOp, float], choices: KernelChoices) -> LoopPlan | None:
    """The loops around the first kernels of a group that gain most; None if none gain clearly."""
    found: list[LoopPlan] = []
    for count in _cuts(group):
        part = group.first(count)
        usual = sum(times[op] for op in part.ops)
        floor = choices.floor_us(part.ops, set(part.internal()))
        if usual >= WORTH_A_LOOK_US and usual - floor > max(CLEAR_GAIN * usual, *(plan.gain_us for plan in found), 0.0):
            found += [p for p in _plans(part, usual, choices) if p.gain_us > CLEAR_GAIN * usual]
    return max(found, key=lambda plan: plan.gain_us, default=None)


def _cuts(group: RowGroup) -> list[int]:
    """Where a group may end: at its end, and before and behind each product."""
    whole = len(group.ops)
    inner = (n for n in range(2, whole) if group.ops[n].is_product or group.ops[n - 1].is_product)
    return sorted({whole, *inner})


def _plans(group: RowGroup, usual: float, choices: KernelChoices) -> Iterator[LoopPlan]:
    spec = choices.spec
    needed = -(-group.held_bytes() // (spec.lx_usable_bytes * spec.cores_per_card))
    outer = LoopChoice(group.pieces)
    inner = {g.loops[0]: LoopChoice(g.pieces) for g in _others(group)}
    for name, choice in [(None, None), *inner.items()]:
        for trips, within in worth_trying(outer, choice, needed, spec.loop_trips):
            us = _looped_us(group, trips, None if name is None else (name, within), choices)
            if us is not None:
                yield LoopPlan(group, trips, None if name is None else (name, within), us, usual - us)


def _others(group: RowGroup) -> Iterator[RowGroup]:
    """The same kernels by their other loops."""
    for other in grow(group.ops[0], group.ops[1:]):
        if len(other.ops) == len(group.ops) and other.loops[0] != group.loops[0]:
            yield other


def _looped_us(group: RowGroup, trips: int, inner: tuple[str, int] | None, choices: KernelChoices) -> float | None:
    """Predicted time of a group in loops; None if its kernels cannot be divided then."""
    body = TiledBody(group, trips)
    try:
        kernels, all_trips = body.kernels, trips
        if inner is not None:
            within = next((g for g in grow(kernels[0], _behind(list(body.block.ops), kernels[0])) if g.loops[0] == inner[0]), None)
            if within is None or len(within.ops) != len(kernels):
                return None
            second = TiledBody(within, inner[1])
            try:
                kernels, all_trips = second.kernels, trips * inner[1]
                return all_trips * _once_us(kernels, choices)
            finally:
                second.drop()
        return all_trips * _once_us(kernels, choices)
    except LoweringError:
        return None
    finally:
        body.drop()


def _once_us(kernels: Sequence[kernel.KernelOp], choices: KernelChoices) -> float:
    for op in kernels:
        divide_kernel(op, choices.spec)
    found = divide_together(choices.sequence(kernels)[0], spec=choices.spec, width=TRIAL_WIDTH)
    return found.us + CALIBRATED.trip_fixed_us


def _install(plan: LoopPlan, choices: KernelChoices) -> None:
    """Put the loops in place of the group, and divide their body."""
    block = TiledBody(plan.group, plan.trips).install()
    if plan.inner is not None:
        ops = list(block.ops)
        first = next(op for op in ops if isinstance(op, kernel.KernelOp))
        within = next(g for g in grow(first, _behind(ops, first)) if g.loops[0] == plan.inner[0])
        block = TiledBody(within, plan.inner[1]).install()
    for op in block.ops:
        if isinstance(op, kernel.KernelOp):
            divide_kernel(op, choices.spec)
    divide_block(block, choices)
