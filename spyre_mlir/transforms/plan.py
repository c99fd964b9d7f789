"""Pass `plan`: divides kernels over the cores and chooses loops around groups of them, by predicted time.

A division that is quickest for one kernel may send what it shares with its neighbours through device memory, so the
kernels of a block are divided together with the choice of what stays in the scratchpads. A group of kernels that
share a loop may run in blocks of its rows, so that what they hand to each other fits there; a second loop may go around
inside, and what they sum over the rows may grow from trip to trip. Of the loops that are worth trying the one that
gains most is taken, if it gains clearly. Kernels that are divided already stay as they are.

Divisions and places are in the text of the kernels. Loops are notes, which `materialize-plan` follows.

Decision: docs/decisions/0129-kernels-are-planned-together.md
Decision: docs/decisions/0188-of-loops-that-gain-alike-few-launches.md
Decision: docs/decisions/0191-loops-pay-for-what-they-take-from-kernels-behind.md
Decision: docs/decisions/0193-plans-share-what-they-know.md
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate, chain
from math import inf

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.target import spec_of
from spyre_mlir.hw.cost_parameters import LAUNCH_US
from spyre_mlir.hw.spec import STICK_BYTES, SpyreSpec
from spyre_mlir.planning.divisions import divide_within
from spyre_mlir.planning.trips import LoopChoice, TripSpan, shared_equally, worth_trying
from spyre_mlir.transforms.kernel_plans.cut_sums import PartedSum, parts_of_sum, parts_of_weight, products_of
from spyre_mlir.transforms.kernel_plans.divided_blocks import divide_as_usual, divide_block, kernels_in, move_to
from spyre_mlir.transforms.kernel_plans.group_loops import GroupLoops, PutNest
from spyre_mlir.transforms.kernel_plans.group_prefixes import GroupPrefix
from spyre_mlir.transforms.kernel_plans.hinted_loops import put_hinted_loops
from spyre_mlir.transforms.kernel_plans.kernel_choices import KernelChoices
from spyre_mlir.transforms.kernel_plans.plan_record import PlanRecord
from spyre_mlir.transforms.kernel_plans.repeated_weights import copies_of, repeat_weights
from spyre_mlir.transforms.kernel_plans.row_blocks import cut_rows
from spyre_mlir.transforms.kernel_plans.row_groups import RowGroup, grow, ops_from
from spyre_mlir.transforms.kernel_plans.running_sums import MOST_TRIPS, most_trips
from spyre_mlir.transforms.kernel_plans.sliced_sums import slice_sums
from spyre_mlir.transforms.kernel_plans.time_floors import ROUNDING, TimeFloors
from spyre_mlir.transforms.kernel_plans.trials import (
    CLEAR_GAIN,
    InnerLoop,
    Trial,
    clear_gain_us,
    cuts,
)
from spyre_mlir.transforms.kernel_plans.wished_buffers import WideWeights, divide_or_refuse
from spyre_mlir.transforms.place_lx import without_room
from spyre_mlir.transforms.plan_notes.kernel_forms import KernelForms
from spyre_mlir.transforms.plan_notes.notes import has_notes, put_time
from spyre_mlir.transforms.planned_loops.written_loops import note_loops, times_of
from spyre_mlir.transforms.utils.cost_numbers import given_numbers
from spyre_mlir.transforms.utils.hints import has_tile, hinted_place, refuse_untiled, settle_hints
from spyre_mlir.transforms.utils.kernels.widened_weights import widens_any
from spyre_mlir.transforms.utils.rebuild import functions

WORTH_TRYING_US = 100.0  # of a group that fits the scratchpads: too little to gain for the time of the search
NO_LOOPS = "options ask for no loops (tile=False, or concrete addresses without loops=unroll): change them or the hint"


@dataclass(frozen=True)
class PlanPass(ModulePass):
    """Chooses divisions and loops for the kernels of every function.

    Attributes:
        together: whether kernels are divided together; if not, all is left to `divide-work`, and no loop is made.
        loops: whether kernels may be put into loops.
        shortest_us: a group that takes less is put into no loop: the shortest kernel that was measured took 15 us.
        numbers: of the cost model that differ from its calibrated profile, as ``name=value``.
    """

    name = "plan"

    together: bool = True
    loops: bool = True
    shortest_us: int = 15
    numbers: tuple[str, ...] = ()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Plan every function of the module; what cannot be divided is left to `divide-work`, loops are noted."""
        for one, us in times_of(self._plan(ctx, op, noted=True)).items():
            put_time(one, us)

    def recorded(self, ctx: Context, op: ModuleOp) -> PlanRecord:
        """Plan every function of the module with its loops in place, and return what was looked at."""
        return self._plan(ctx, op, noted=False)

    def _plan(self, ctx: Context, op: ModuleOp, *, noted: bool) -> PlanRecord:
        record = PlanRecord()
        choices = partial(KernelChoices.known, spec_of(ctx, op), given_numbers(self.numbers), narrow=widens_any(op))
        for function in functions(op):
            if has_notes(function):
                continue  # it is planned
            spare = function.body.clone() if self.together and self.loops else None
            kernels, blocks = kernels_in(function.body.block), len(record.blocks)
            found = self._planned(choices(), function.body.block, record, search=self.loops)
            if spare is not None and not found.gains:
                tried, spare = spare, spare.clone() if noted and any(map(has_tile, kernels_in(spare.block))) else None
                function.detach_region(function.body)
                function.add_region(tried)
                record.start_again(blocks, dict(zip(kernels, kernels_in(tried.block), strict=True)))
                found = self._planned(choices(), tried.block, record, search=False)
            if noted and spare is not None and found.nests:
                note_loops(function, spare, found.nests, found.forms, record, spec_of(ctx, op))
        return record

    def _planned(self, choices: KernelChoices, block: Block, record: PlanRecord, *, search: bool) -> _Planned:
        """Plan a block; without a search only loops that hints ask for are put."""
        settle_hints(kernels_in(block), choices.spec)
        builder, forms = GroupLoops(choices, record), KernelForms(kernels_in(block))
        if self.together and search and choices.narrow:
            repeat_weights(block, choices.is_widened, forms, choices.spec, choices.parameters)
            cut_rows(block, choices.is_widened, forms, choices.parameters)
            choices.moved()
        hinted_us = 0.0
        if self.together and self.loops:
            hinted_us = put_hinted_loops(block, builder)
        else:
            refuse_untiled(kernels_in(block), NO_LOOPS)
        if not (self.together and divide_as_usual(block, choices)):
            for value in [op.output for op in kernels_in(block) if hinted_place(op.output) == "lx"]:
                move_to(value, "lx")  # `place-lx` finds room for it, or refuses
            record.us.append(None)
            return _Planned(True, builder.nests, forms)
        slice_sums(block, choices, forms)
        loops = _Loops(block, builder, forms, self.shortest_us)
        if search:
            loops.put()
        others_us = divide_block(block, choices, record)
        for alloc in without_room(block, choices.spec):
            if hinted_place(alloc.result) != "lx":
                move_to(alloc.result, "hbm")
        record.us.append(hinted_us + (loops.inside_us or 0.0) + others_us)
        gains = loops.inside_us is None or loops.inside_us + others_us <= loops.without_us
        return _Planned(gains, builder.nests, forms)


@dataclass(frozen=True)
class _Planned:
    """A block after planning.

    Attributes:
        gains: whether loops around some of its kernels take no more from the others than they gain.
        nests: these loops.
        forms: its kernels before any loop.
    """

    gains: bool
    nests: Sequence[PutNest]
    forms: KernelForms


@dataclass
class _Loops:
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
        held_bytes = sum([kernel.device_tensor(v).sticks for v in held]) * STICK_BYTES
        self._fit = set(kernels) if held_bytes <= self._room_bytes else set()
        rests_us = list(accumulate(reversed(timed)))[::-1]
        done = set[Operation]()
        for number, (op, hope, rest_us) in enumerate(zip(kernels, hopes, rests_us, strict=True)):
            if hope <= CLEAR_GAIN * max(self.shortest_us, 0):
                break  # no group from here on gains clearly
            if op in done:
                continue
            tried = self._may_be_tried(kernels[number:], rest_us)
            groups = grow(op, ops_from(op.next_op), self.builder.rows) if tried else ()
            trials = [trial for group in groups for trial in self._trials(group, times)]
            gain, best = self._best(trials)
            if (parts := self._in_parts(op, times, gain)) is not None:
                gain, best = parts
            elif products := self._weight_in_parts(op, times, best, gain):
                done.update(products)
                continue
            if best is not None:
                us = best.usual_us - gain
                self.inside_us = (self.inside_us or 0.0) + us
                done.update(best.group.ops)
                self.builder.put(best, us)

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

        def most_gained(trial: Trial) -> float:
            return trial.usual_us - trial.least_us - each * trial.launches

        # The most promising first, so that most of the others need not be built.
        for number, trial in sorted(enumerate(trials), key=lambda pair: -most_gained(pair[1])):
            if most_gained(trial) < most[0]:
                self.record.loops.append(trial.told())
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
            found = list[tuple[tuple[TripSpan, ...], InnerLoop | None, float]]()
            if not prefix.is_summed and (saved or self._leaves_cores_idle(prefix, usual_us)):  # a sum grows in one loop
                cores = self.spec.cores_per_card // copies_of(group.ops[:count], group.loops[:count])
                shared = shared_equally(prefix.pieces, cores, needed)
                found += [(spans, None, floor) for spans in shared]
            for trips, inner in self._loops(prefix, needed):
                within = 1 if inner is None else inner.trips
                if floor + trips * within * self.choices.parameters.trip_fixed_us >= clearly:
                    continue
                if (least := prefix.in_loops_us(trips, inner)) < clearly:
                    found.append(((TripSpan.of_all(trips),), inner, max(least, floor)))
            part = group.first(count) if found else group
            yield from (Trial(part, spans, inner, usual, least, saved) for spans, inner, least in found)

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
        """Loops around kernels that are worth a try: trips of the outer one, and the inner one if there is one."""
        outer, most = LoopChoice(prefix.pieces), self.spec.loop_trips
        most = most_trips(prefix.group.ops[prefix.count - 1], most) if prefix.is_summed else most
        few = min(most, MOST_TRIPS) if prefix.is_summed else most
        for trips, _ in sorted({*worth_trying(outer, None, needed, few), *worth_trying(outer, None, needed, most)}):
            yield trips, None
        for pieces, loops in prefix.inner_loops():
            for trips, within in worth_trying(outer, LoopChoice(pieces), needed, most):
                yield trips, InnerLoop(within, loops)

    def _known_us(self, trial: Trial, most_us: float) -> float | None:
        """Predicted time of loops, built once for kernels that are equal, as those of equal layers are."""
        known = self.choices.loops_us
        key = trial.identity(self.choices.is_widened), self.choices.narrow, most_us
        if key not in known:
            known[key] = self.builder.us(trial, most_us)
        return known[key]
