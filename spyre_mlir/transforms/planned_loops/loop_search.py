"""The search for loops around kernels of a block: groups that share rows, by predicted time.

The kernels are gone through in their order. Around each of them and some behind it the loops that gain most are found,
and put unless those from a later kernel on gain more.

Decision: docs/decisions/0188-of-loops-that-gain-alike-few-launches.md
Decision: docs/decisions/0191-loops-pay-for-what-they-take-from-kernels-behind.md
Decision: docs/decisions/0195-loops-begin-where-they-gain-most.md
Decision: docs/decisions/0210-loops-are-priced-when-they-promise-most.md
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import accumulate, chain, pairwise
from math import inf

from xdsl.ir import Block, Operation, SSAValue

from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.kernel_gather import GatherOp
from spyre_mlir.hw.cost_parameters import LAUNCH_US
from spyre_mlir.hw.spec import STICK_BYTES, SpyreSpec
from spyre_mlir.ops.table import Family
from spyre_mlir.planning.divisions import divide_within
from spyre_mlir.planning.trips import LoopChoice, TripSpan, shared_equally, worth_trying
from spyre_mlir.transforms.kernel_loops.cut_sums import PartedSum, parts_of_sum, parts_of_weight, products_of
from spyre_mlir.transforms.kernel_loops.group_loops import GroupLoops
from spyre_mlir.transforms.kernel_loops.group_prefixes import GroupPrefix
from spyre_mlir.transforms.kernel_loops.repeated_weights import copies_of, shared_rows
from spyre_mlir.transforms.kernel_loops.row_groups import RowGroup, grow, ops_from
from spyre_mlir.transforms.kernel_loops.running_sums import MOST_TRIPS, most_trips
from spyre_mlir.transforms.kernel_loops.time_floors import ROUNDING, TimeFloors
from spyre_mlir.transforms.kernel_loops.trials import CLEAR_GAIN, InnerLoop, Trial, clear_gain_us, cuts
from spyre_mlir.transforms.kernel_plans.divided_blocks import kernels_in
from spyre_mlir.transforms.kernel_plans.kernel_choices import KernelChoices
from spyre_mlir.transforms.kernel_plans.plan_record import PlanRecord
from spyre_mlir.transforms.kernel_plans.wished_buffers import WideWeights, divide_or_refuse
from spyre_mlir.transforms.plan_notes.kernel_forms import KernelForms
from spyre_mlir.transforms.utils.hints import has_tile

WORTH_TRYING_US = 100.0  # of a group that fits the scratchpads: too little to gain for the time of the search


@dataclass
class LoopSearch:
    """The search for loops around the kernels of a block.

    Attributes:
        inside_us: predicted time of the kernels that have been put into loops; None if none have.
        without_us: predicted time of all kernels without loops.
    """

    block: Block
    builder: GroupLoops
    forms: KernelForms
    shortest_us: float
    inside_us: float | None = None
    without_us: float = 0.0
    _slow: set[kernel.KernelOp] = field(default_factory=set[kernel.KernelOp])
    _fit: set[kernel.KernelOp] = field(default_factory=set[kernel.KernelOp])  # for all whose buffers there is room
    _wide: WideWeights = field(default_factory=WideWeights)
    _held: set[SSAValue] = field(default_factory=set[SSAValue])  # without loops
    _floors: TimeFloors = field(init=False)
    _found: dict[kernel.KernelOp, tuple[float, Trial | None]] = field(
        default_factory=dict[kernel.KernelOp, "tuple[float, Trial | None]"]
    )  # the best from a kernel on
    _most_us: dict[kernel.KernelOp, float] = field(default_factory=dict[kernel.KernelOp, float])  # that loops save
    _gainless: set[kernel.KernelOp] = field(default_factory=set[kernel.KernelOp])  # in groups that gain nothing

    def __post_init__(self) -> None:
        self._floors = TimeFloors(self.choices)

    def put(self) -> None:
        """Put groups of kernels into loops that are predicted to gain."""
        kernels = kernels_in(self.block)
        sequence, buffers = self.choices.sequence(kernels)
        flat = divide_or_refuse(kernels, sequence, self.choices.prices)
        self._wide = WideWeights.of(kernels, sequence, buffers, flat)
        self._held = {buffers[number] for number in flat.local}
        extra = self._wide.us(kernels)
        self.without_us = extra + flat.us
        # Buffers of the block may be in the scratchpads throughout: no loop saves more than that.
        held = {v for op in kernels for v in op.operands if isinstance(v.owner, kernel.AllocOp)}
        if extra + flat.us - self._floors.us(kernels, held) <= CLEAR_GAIN * max(self.shortest_us, 0):
            return
        self._slow = {op for op in kernels if self.choices.has_slow_batch(op)}
        times = dict(zip(kernels, flat.times, strict=True))
        timed = [us + self._wide.us([op]) for op, us in times.items()]
        hopes = self._floors.hopes_us(kernels, timed, held)
        self._most_us = dict(
            zip(kernels, self._floors.saved_us(kernels, timed, held | _read_by_several(kernels)), strict=True)
        )
        held_bytes = sum([kernel.device_tensor(v).sticks for v in held]) * STICK_BYTES
        self._fit = set(kernels) if held_bytes <= self._room_bytes else set()
        rests_us = list(accumulate(reversed(timed)))[::-1]
        done = set[Operation]()
        for number, (op, hope, rest_us) in enumerate(zip(kernels, hopes, rests_us, strict=True)):
            if hope <= CLEAR_GAIN * max(self.shortest_us, 0):
                break  # no group from here on gains clearly
            if op in done:
                continue
            again = number > 0 and self._in_vain(kernels[number - 1], op)
            tried = not again and self._may_be_tried(kernels[number:], rest_us)
            gain, best = self._around(op, times) if tried else (0.0, None)
            if (parts := self._in_parts(op, times, gain)) is not None:
                gain, best = parts
            elif best is not None and self._gains_more_later(best, gain, times):
                continue
            elif products := self._weight_in_parts(op, times, best, gain):
                self._found.clear()
                done.update(products)
                continue
            if best is not None:
                self._found.clear()
                us = best.usual_us - gain
                self.inside_us = (self.inside_us or 0.0) + us
                done.update(best.group.ops)
                self.builder.put(best, us)

    def _around(self, op: kernel.KernelOp, times: Mapping[kernel.KernelOp, float]) -> tuple[float, Trial | None]:
        """The loops that gain most around a kernel and some behind it, with their gain; None if none gain clearly."""
        if op not in self._found:
            groups = list(grow(op, ops_from(op.next_op), self.builder.rows))
            self._found[op] = self._best([trial for group in groups for trial in self._trials(group, times)])
            if self._found[op][1] is None:
                self._gainless.update(*[group.ops for group in groups])
        return self._found[op]

    def _in_vain(self, before: kernel.KernelOp, op: kernel.KernelOp) -> bool:
        """Whether loops from a kernel on are those from the kernel before it on, which gain nothing, but for that one.

        A product or a copy may lose in loops what kernels behind it gain; an elementwise kernel or a sum loses little,
        unless what it reads is in the scratchpads for all rows, as the rows that a gather behind it copies are not.
        """
        computes = isinstance(before, kernel.ComputeOp) and before.entry.family in (Family.POINTWISE, Family.REDUCTION)
        return computes and not isinstance(op, GatherOp) and self._gainless.issuperset((before, op))

    def _gains_more_later(self, best: Trial, gain: float, times: Mapping[kernel.KernelOp, float]) -> bool:
        """Whether loops gain more without the first products, or from a gather on.

        Products have fewer rows to fill the array in a trip, and what is in front of a gather may have other rows.
        """
        written = set[SSAValue]()
        for op, following in pairwise(best.group.ops):
            first = isinstance(following, GatherOp) or (op.is_product and written.isdisjoint(op.inputs))
            if first and self._may_gain(following, gain) and self._around(following, times)[0] > gain:
                return True
            written.add(op.output)
        return False

    def _may_gain(self, op: kernel.KernelOp, us: float) -> bool:
        """Whether loops around a kernel and some behind it may save more than a time, whatever they hold."""
        groups = grow(op, ops_from(op.next_op), self.builder.rows)
        return any(sum([self._most_us.get(k, inf) for k in group.ops]) > us for group in groups)

    def _in_parts(
        self, op: kernel.KernelOp, times: Mapping[kernel.KernelOp, float], least_us: float
    ) -> tuple[float, Trial] | None:
        """Put a product whose sum is divided in parts, if the best loops around these gain more than so much."""
        parts = 1 if op in self.choices.fixed else parts_of_sum(op, self.spec)
        if parts == 1 or not isinstance(op, kernel.ComputeOp):
            return None
        parted = PartedSum.put([op], parts)
        kernels = parted.kernels
        for part in kernels:
            self.choices.divide(part)
        # All of them stand for the product.
        known = {**times, **dict.fromkeys(kernels, 0.0), kernels[-1]: times[op]}
        if op in self._wide.stored:
            self._wide.stored[kernels[-1]] = self._wide.stored[op]
        groups = grow(kernels[0], chain(kernels[1:], ops_from(parted.following)), self.builder.rows)
        gain, best = self._best([trial for group in groups for trial in self._trials(group, known)])
        if best is not None and gain > least_us:
            parted.note(self.forms)
            parted.keep()
            self.choices.moved()
            return gain, best
        parted.undo()
        return None

    def _weight_in_parts(
        self, op: kernel.KernelOp, times: Mapping[kernel.KernelOp, float], loops: Trial | None, least_us: float
    ) -> Sequence[kernel.KernelOp]:
        """Put a weight and its products in parts, if these gain clearly more than the best loops; return the products.

        The parts are in no loop.
        """
        products = products_of(op) if op.output in self._wide.stored.get(op, ()) else []
        if not products or not isinstance(op, kernel.ConvertOp) or not self.choices.fixed.isdisjoint((op, *products)):
            return []
        parts = parts_of_weight(op, products, self.spec)
        if parts == 1:
            return []
        others = [] if loops is None else [other for other in loops.group.ops if other not in (op, *products)]
        usual_us = sum(times[k] for k in (op, *products, *others)) + self._wide.us([op, *products, *others])
        parted = PartedSum.put(products, parts, op)
        for part in parted.kernels:
            self.choices.divide(part)
        sequence, _ = self.choices.sequence([*parted.kernels, *others])
        most_us = (usual_us - least_us) * (1 - CLEAR_GAIN)  # each part rounds its sum: it has to pay
        if divide_within(sequence, most_us, self.choices.prices) is None:
            parted.undo()
            return []
        parted.note(self.forms)
        parted.keep()
        self.choices.moved()
        return products

    @property
    def choices(self) -> KernelChoices:
        """Choices of each kernel."""
        return self.builder.choices

    @property
    def record(self) -> PlanRecord:
        """Record of plans and trials."""
        return self.builder.record

    @property
    def spec(self) -> SpyreSpec:
        """The machine."""
        return self.choices.spec

    @property
    def _room_bytes(self) -> int:
        """Bytes of the scratchpads of all cores."""
        return self.spec.lx_usable_bytes * self.spec.cores_per_card

    def _best(self, trials: Sequence[Trial]) -> tuple[float, Trial | None]:
        """The loops that gain most, of equals the first, with their gain; None if none gain clearly.

        Of loops that gain alike those with few launches are better, so each launch counts a little against a gain.
        """
        best, gain, most = None, 0.0, (-inf, 0)
        each = max(0.0, LAUNCH_US - self.choices.parameters.kernel_fixed_us)

        def promise(number: int, trial: Trial) -> tuple[float, int, Trial]:
            return -(trial.usual_us - trial.least_us - each * trial.launches), number, trial

        # The most promising first, so that most of the others need neither be priced by the trip nor built.
        waiting = [promise(*pair) for pair in enumerate(trials)]
        heapify(waiting)
        while waiting:
            promised, number, trial = heappop(waiting)
            if -promised < most[0]:
                self.record.loops.append(trial.told())
                continue
            if trial.held:
                trial = self._floors.priced(trial)
                if trial.least_us < trial.usual_us - clear_gain_us(trial.usual_us):
                    heappush(waiting, promise(number, trial))
                continue
            least_gain = max(clear_gain_us(trial.usual_us), most[0] + each * trial.launches)
            us = self._known_us(trial, trial.usual_us - least_gain)
            self.record.loops.append(trial.told(us, trial.usual_us - least_gain))
            gained = 0.0 if us is None else trial.usual_us - us
            worth = gained - each * trial.launches, -number
            if gained > clear_gain_us(trial.usual_us) and worth > most:
                best, gain, most = trial, gained, worth
        return gain, best

    def _trials(self, group: RowGroup, times: Mapping[kernel.KernelOp, float]) -> Iterator[Trial]:
        """Loops around the first kernels of a group that may gain clearly."""
        prefix, usual_us = GroupPrefix(group, self._floors), [times[op] for op in group.ops]
        own = (n for n, op in enumerate(group.ops) if op in self.choices.fixed or has_tile(op))
        whole = next(own, len(group.ops))
        wide_us = self._wide.us(group.ops)
        for count in [count for count in cuts(group, self._wide.stored) if count <= whole]:
            if not self._may_be_tried(group.ops[:count], sum(usual_us[:count]) + wide_us):
                continue
            prefix.extend(count)
            saved = self._wide.saved_us(group.ops[:count], prefix.operands[:count], prefix.internal)
            if saved is None or (usual := sum(usual_us[:count]) + saved) < self.shortest_us:
                continue
            usual -= prefix.lost_us(self._held)
            needed, clearly = self._needed(prefix, usual), usual - clear_gain_us(usual)
            if needed is None or (floor := prefix.floor_us()) >= clearly or prefix.is_asked_for_whole():
                continue
            found = list[tuple[tuple[TripSpan, ...], InnerLoop | None]]()
            if not prefix.is_summed and (saved or self._leaves_cores_idle(prefix, usual_us)):
                ops, loops = group.ops[:count], group.loops[:count]
                cores = self.spec.cores_per_card // copies_of(ops, loops)
                shared = shared_equally(prefix.pieces, cores, needed, shared_rows(ops, loops))
                found += [(spans, None) for spans in shared]
            for trips, inner in self._loops(prefix, needed):
                within = 1 if inner is None else inner.trips
                if floor + trips * within * self.choices.parameters.trip_fixed_us >= clearly:
                    continue
                found.append(((TripSpan.of_all(trips),), inner))
            part, held = group.first(count) if found else group, tuple(prefix.held)
            for spans, inner in found:
                yield Trial(part, spans, inner, usual, floor, saved, held if len(spans) == 1 else ())

    def _leaves_cores_idle(self, prefix: GroupPrefix, usual_us: Sequence[float]) -> bool:
        """Whether products of narrow weights, which all fit, take most of the time: cores that have none count then."""
        ops, times = prefix.group.ops[: prefix.count], usual_us[: prefix.count]
        in_products = sum(us for op, us in zip(ops, times, strict=True) if op.is_product)
        return not self._wide.held.isdisjoint(prefix.internal) and 2 * in_products > sum(times)

    def _may_be_tried(self, ops: Sequence[kernel.KernelOp], usual_us: float) -> bool:
        """Whether loops around some of these kernels may be worth a try, which take at most so long without."""
        most_us = usual_us * (1 + ROUNDING)
        little = most_us < WORTH_TRYING_US and self._fit.issuperset(ops) and self._slow.isdisjoint(ops)
        return not little and most_us >= self.shortest_us

    def _needed(self, prefix: GroupPrefix, usual_us: float) -> int | None:
        """The fewest trips in which what kernels hold may fit the scratchpads; None if no loops are worth a try."""
        needed = -(-prefix.held_bytes() // self._room_bytes)
        slow = self._slow and not self._slow.isdisjoint(prefix.group.ops[: prefix.count])
        if usual_us < WORTH_TRYING_US and needed <= 1 and not slow:
            return None  # what the kernels hand to each other fits as it is, and no rate would rise
        return needed

    def _loops(self, prefix: GroupPrefix, needed: int) -> Iterator[tuple[int, InnerLoop | None]]:
        """Loops around kernels that are worth a try: trips of the outer one, and the inner one if there is one.

        A sum grows in one loop of equal trips.
        """
        outer, most = LoopChoice(prefix.pieces), self.spec.loop_trips
        most = most_trips(prefix.group.ops[prefix.count - 1], most) if prefix.is_summed else most
        few = min(most, MOST_TRIPS) if prefix.is_summed else most
        for trips, _ in sorted({*worth_trying(outer, None, needed, few), *worth_trying(outer, None, needed, most)}):
            yield trips, None
        for pieces, loops in () if prefix.is_summed else prefix.inner_loops():
            for trips, within in worth_trying(outer, LoopChoice(pieces), needed, most):
                yield trips, InnerLoop(within, loops)

    def _known_us(self, trial: Trial, most_us: float) -> float | None:
        """Predicted time of loops, built once for kernels that are equal, as those of equal layers are."""
        known = self.choices.loops_us
        key = trial.identity(self.choices.is_widened), self.choices.narrow, most_us
        if key not in known:
            known[key] = self.builder.us(trial, most_us)
        return known[key]


def _read_by_several(ops: Sequence[kernel.KernelOp]) -> set[SSAValue]:
    """Buffers that several kernels read, which loops may copy to the scratchpads once for all of them."""
    reads = Counter(value for op in ops for value in set(op.inputs))
    return {value for value, count in reads.items() if count > 1}


__all__ = ["LoopSearch"]
