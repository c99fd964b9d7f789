"""Pass `plan`: divides kernels over the cores and puts groups of them into loops, by predicted time.

A division that is quickest for one kernel may send what it shares with its neighbours through device memory, so the
kernels of a block are divided together with the choice of what stays in the scratchpads. A group of kernels that
share a loop may run in blocks of its rows, so that what they hand to each other fits there; a second loop may go around
inside. Of the loops that are worth trying the one that gains most is taken, if it gains clearly. Kernels that are
divided already stay as they are.

Decision: docs/decisions/0129-kernels-are-planned-together.md
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
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.planning.divisions import divide_together
from spyre_mlir.planning.trips import LoopChoice, worth_trying
from spyre_mlir.transforms.divide_work import divide_kernel
from spyre_mlir.transforms.kernel_plans.kernel_choices import KernelChoices
from spyre_mlir.transforms.kernel_plans.row_groups import RowGroup, grow
from spyre_mlir.transforms.kernel_plans.tiled_body import TiledBody
from spyre_mlir.transforms.place_lx import without_room
from spyre_mlir.transforms.utils.loops import divided
from spyre_mlir.transforms.utils.rebuild import functions

CLEAR_GAIN = 0.05  # part of the time that a loop must save
WORTH_TRYING_US = 100.0  # of a group that fits the scratchpads: too little to gain for the time of the search
TRIAL_WIDTH = 6  # of the search for divisions while a loop is tried


@dataclass(frozen=True)
class PlanPass(ModulePass):
    """Chooses divisions and loops for the kernels of every function.

    Attributes:
        together: whether kernels are divided together; if not, all is left to `divide-work`, and no loop is made.
        loops: whether kernels may be put into loops.
        shortest_us: a group that takes less is put into no loop: the shortest kernel that was measured took 15 us.
    """

    name = "plan"

    together: bool = True
    loops: bool = True
    shortest_us: int = 15

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Plan every function of the module; what cannot be divided is left to `divide-work`."""
        choices = KernelChoices(spec_of(ctx, op))
        for function in functions(op):
            block = function.body.block
            if not (self.together and _divide_as_usual(block, choices)):
                continue
            if self.loops:
                _Loops(block, choices, self.shortest_us).put()
            divide_block(block, choices)
            for alloc in without_room(block, choices.spec):
                _move(alloc.result, "hbm")


def divide_block(block: Block, choices: KernelChoices) -> None:
    """Divide the kernels of a block together, as far as that is predicted to be quicker than one by one."""
    ops = _kernels(block)
    kernels, buffers = choices.sequence(ops)
    usual = divide_together([replace(k, candidates=k.candidates[:1]) for k in kernels], spec=choices.spec)
    best = divide_together(kernels, spec=choices.spec)
    if best.us >= usual.us:
        return
    for op, found, number in zip(ops, kernels, best.chosen, strict=True):
        op.space = divided(op.space, found.candidates[number].splits)
    for number in best.local:
        if isinstance(buffers[number].owner, kernel.AllocOp):
            _move(buffers[number], "lx")


def _divide_as_usual(block: Block, choices: KernelChoices) -> bool:
    """Divide kernels that have no division yet one by one; return whether all could be, and have a file."""
    ops = _kernels(block)
    given = {op for op in ops if any(d.split > 1 for d in op.space.data)}
    choices.fixed |= given
    try:
        for op in ops:
            if op not in given:
                divide_kernel(op, choices.spec)
            choices.candidates(op)
    except LoweringError:
        return False
    return True


def _kernels(block: Block) -> list[kernel.KernelOp]:
    return [op for op in block.ops if isinstance(op, kernel.KernelOp)]


def _move(buffer: SSAValue, space: Literal["hbm", "lx"]) -> None:
    made = DeviceTensorType(replace(kernel.device_tensor(buffer), space=space))
    Rewriter.replace_value_with_new_type(buffer, made)


@dataclass(frozen=True)
class LoopPlan:
    """A group of kernels in one loop or two.

    Attributes:
        group: the kernels.
        trips: of the loop around them.
        inner: the loop inside of it by its name in the first kernel, and its trips, if there is one.
        us: predicted time.
        gain_us: how much shorter that is than without loops.
    """

    group: RowGroup
    trips: int
    inner: tuple[str, int] | None
    us: float
    gain_us: float


@dataclass
class _Loops:
    """The search for loops around the kernels of a block."""

    block: Block
    choices: KernelChoices
    shortest_us: float

    def put(self) -> None:
        """Put groups of kernels into loops that are predicted to gain."""
        kernels = _kernels(self.block)
        flat = divide_together(self.choices.sequence(kernels)[0], spec=self.spec)
        # Buffers of the block may be in the scratchpads throughout: no loop saves more than that.
        held = {v for op in kernels for v in op.operands if isinstance(v.owner, kernel.AllocOp)}
        if flat.us - self.choices.floor_us(kernels, held) <= CLEAR_GAIN * max(self.shortest_us, 0):
            return
        times = dict(zip(kernels, flat.times, strict=True))
        done = set[Operation]()
        for op in kernels:
            if op in done:
                continue
            plans = [p for group in grow(op, _behind(op)) if (p := self._best(group, times)) is not None]
            if plans:
                best = max(plans, key=lambda plan: plan.gain_us)
                done.update(best.group.ops)
                self._install(best)

    @property
    def spec(self) -> SpyreSpec:
        """The machine."""
        return self.choices.spec

    def _best(self, group: RowGroup, times: Mapping[kernel.KernelOp, float]) -> LoopPlan | None:
        """The loops around the first kernels of a group that gain most; None if none gain clearly."""
        best: LoopPlan | None = None
        for count in _cuts(group):
            part = group.first(count)
            usual = sum(times[op] for op in part.ops)
            wanted = max(CLEAR_GAIN * usual, best.gain_us if best else 0.0)
            possible = usual - self.choices.floor_us(part.ops, set(part.internal()))
            if usual < self.shortest_us or possible <= wanted or any(op in self.choices.fixed for op in part.ops):
                continue
            found = max(self._plans(part, usual), key=lambda plan: plan.gain_us, default=None)
            if found is not None and found.gain_us > wanted:
                best = found
        return best

    def _plans(self, group: RowGroup, usual_us: float) -> Iterator[LoopPlan]:
        needed = -(-group.held_bytes() // (self.spec.lx_usable_bytes * self.spec.cores_per_card))
        fits = needed <= 1 and not any(self.choices.has_slow_batch(op) for op in group.ops)
        if fits and usual_us < WORTH_TRYING_US:
            return  # what the kernels hand to each other fits as it is, and no rate would rise
        others = (g for g in grow(group.ops[0], group.ops[1:]) if len(g.ops) == len(group.ops))
        inner = {g.loops[0]: LoopChoice(g.pieces) for g in others if g.loops[0] != group.loops[0]}
        for name, choice in [(None, None), *inner.items()]:
            for trips, within in worth_trying(LoopChoice(group.pieces), choice, needed, self.spec.loop_trips):
                second = None if name is None else (name, within)
                if (us := self._us(group, trips, second)) is not None:
                    yield LoopPlan(group, trips, second, us, usual_us - us)

    def _us(self, group: RowGroup, trips: int, inner: tuple[str, int] | None) -> float | None:
        """Predicted time of a group in loops; None if its kernels cannot be divided then."""
        body = TiledBody(group, trips)
        try:
            if inner is None:
                return trips * self._once_us(body.kernels)
            within = _inside(body.block, inner[0])
            if within is None:
                return None
            second = TiledBody(within, inner[1])
            try:
                return trips * inner[1] * self._once_us(second.kernels)
            finally:
                second.drop()
        except LoweringError:
            return None
        finally:
            body.drop()

    def _once_us(self, kernels: Sequence[kernel.KernelOp]) -> float:
        for op in kernels:
            divide_kernel(op, self.spec)
        found = divide_together(self.choices.sequence(kernels)[0], spec=self.spec, width=TRIAL_WIDTH)
        return found.us + CALIBRATED.trip_fixed_us

    def _install(self, plan: LoopPlan) -> None:
        """Put the loops in place of the group, and divide their body."""
        block = TiledBody(plan.group, plan.trips).install()
        if plan.inner is not None and (within := _inside(block, plan.inner[0])) is not None:
            block = TiledBody(within, plan.inner[1]).install()
        for op in _kernels(block):
            divide_kernel(op, self.spec)
        divide_block(block, self.choices)


def _behind(op: Operation) -> Iterator[Operation]:
    while (following := op.next_op) is not None:
        yield following
        op = following


def _inside(block: Block, name: str) -> RowGroup | None:
    """All kernels of a body by another of their loops; None if they do not share it."""
    first, *rest = _kernels(block)
    groups = (g for g in grow(first, _behind(first)) if g.loops[0] == name)
    found = next(groups, None)
    return found if found is not None and len(found.ops) == len(rest) + 1 else None


def _cuts(group: RowGroup) -> list[int]:
    """Where a group may end: at its end, and before and behind each product."""
    whole = len(group.ops)
    inner = (n for n in range(2, whole) if group.ops[n].is_product or group.ops[n - 1].is_product)
    return sorted({whole, *inner})
