"""Kernels as the planner sees them: buffers by number, and every legal division with its work and its slices.

Decision: docs/decisions/0141-cores-before-reread.md
Decision: docs/decisions/0193-plans-share-what-they-know.md
Decision: docs/decisions/0199-images-keep-cores-idle-for-the-scratchpads.md
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import count
from math import prod

from xdsl.ir import Operation, SSAValue

from spyre_mlir.dialects.places import placed
from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.attributes import SpaceAttr
from spyre_mlir.dialects.spyre.hints import HINT, HintError, hint_of
from spyre_mlir.dialects.spyre.kernel_facts import fact
from spyre_mlir.dialects.spyre.kernel_gather import GatherOp
from spyre_mlir.dialects.spyre.kernel_loop import TileOp
from spyre_mlir.dialects.superdsc.model.work import WorkByDivision
from spyre_mlir.hw.cost import arithmetic_us, filled_by, roofline_us, total_us
from spyre_mlir.hw.cost_parameters import CALIBRATED, CostParameters
from spyre_mlir.hw.division import Refusal, divide, divisions, divisors, judged_divisions
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.planning.agreement import with_spare
from spyre_mlir.planning.divisions import OUTSIDE, DividedKernel, Kernel, Prices
from spyre_mlir.transforms.divide_work import divide_kernel
from spyre_mlir.transforms.kernel_plans.operand_slices import OperandSlices
from spyre_mlir.transforms.kernel_plans.unfit_buffers import unfit_reason
from spyre_mlir.transforms.kernel_to_superdsc.descriptors import describe_work
from spyre_mlir.transforms.utils.hints import hinted_divisions, hinted_place
from spyre_mlir.transforms.utils.kernels.held_operands import (
    buffers_of,
    copied_inputs,
    cores_of_rows,
    holds_rows,
    joins_rows,
    may_hold,
)
from spyre_mlir.transforms.utils.kernels.launches import Launches, one_launch
from spyre_mlir.transforms.utils.kernels.loops import columns_first, footprints, last_first, loops_of
from spyre_mlir.transforms.utils.kernels.widened_weights import KernelCounts, is_widened

# A division that takes more time than this, and so many times that of the quickest, is not considered.
SLOW_US, SLOW = 5.0, 4.0
# Shorter kernels have the usual division, or one over more cores: no choice could change much.
SHORT_US = 1.0
# Part of the usual cores that has to be busy, unless fewer let a kernel without a product agree with others.
BUSY = 7 / 8
# Why a legal division is no candidate.
HINTED = "a hint asks for another"
GIVEN, TOO_SHORT = "the program gives the division", "the kernel is too short for another that is on no more cores"
TOO_SLOW = f"{SLOW:.0f} times slower than the quickest, whatever the scratchpads hold"
# Kernels of which a process knows divisions: beyond that it forgets them all.
MOST_KNOWN = 1024


@dataclass
class KernelChoices:
    """The kernels of a module for the planner; what depends on a kernel alone is computed once.

    Attributes:
        spec: the machine.
        narrow: whether the module may widen a weight of few bits; to ask so of every buffer takes long.
        fixed: kernels whose division was there before.
        parameters: the numbers of the cost model.
        widened: what is known of widened weights; see `moved`.
        loops_us: predicted times of loops that were built, by kernels that are equal, as those of equal layers are.
    """

    spec: SpyreSpec
    narrow: bool = True
    fixed: set[Operation] = field(default_factory=set[Operation])
    parameters: CostParameters = CALIBRATED
    prices: Prices = field(init=False)
    widened: KernelCounts = field(default_factory=dict[SSAValue, "int | None"])
    loops_us: dict[Hashable, float | None] = field(default_factory=dict[Hashable, "float | None"])
    _usual: dict[Hashable, SpaceAttr] = field(default_factory=dict[Hashable, SpaceAttr])
    _known: dict[Hashable, tuple[DividedKernel, ...]] = field(default_factory=dict[Hashable, tuple[DividedKernel, ...]])
    _spare: dict[Hashable, tuple[DividedKernel, ...]] = field(default_factory=dict[Hashable, tuple[DividedKernel, ...]])
    _floors: dict[Hashable, float] = field(default_factory=dict[Hashable, float])
    _views: dict[Hashable, int] = field(default_factory=dict[Hashable, int])
    _numbers: Iterator[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        self.prices = Prices(self.parameters, self.spec)

    @staticmethod
    def known(spec: SpyreSpec, parameters: CostParameters, *, narrow: bool) -> KernelChoices:
        """Return choices that know what any plan of this process has learned of equal kernels.

        Args:
            spec: the machine.
            parameters: the numbers of the cost model.
            narrow: as for `of_others`.
        """
        if len(_learned(spec, parameters)._known) > MOST_KNOWN:
            _learned.cache_clear()  # plans that are being made keep what they know
        return _learned(spec, parameters).of_others(narrow=narrow)

    def of_others(self, *, narrow: bool) -> KernelChoices:
        """Return choices for other kernels: what is known of kernels that are equal stays known.

        Args:
            narrow: whether their module may widen a weight of few bits.
        """
        others = replace(self, narrow=narrow, fixed=set[Operation](), widened=dict[SSAValue, "int | None"]())
        others.prices = self.prices
        return others

    def sequence(
        self,
        ops: Sequence[kernel.KernelOp],
        launches: Launches | None = None,
        totals: Collection[SSAValue] = (),
    ) -> tuple[list[Kernel], list[SSAValue]]:
        """Return kernels that follow each other in one block as the planner takes them, and their buffers by number.

        Args:
            ops: the kernels.
            launches: that they run in, unless that is one: the scratchpads hold nothing between two.
            totals: buffers that they add to, and kernels outside of a loop around them use, which can do it alike.

        Raises:
            HintError: a hint asks for a buffer in the scratchpads that cannot be there.
        """
        copied = copied_inputs(ops)
        held = (value for value in buffers_of(ops) if hinted_place(value) != "hbm")
        numbered = copied | {v for v in held if one_launch((u.operation for u in v.uses), launches or {})}
        numbered |= set(totals)
        wanted = _asked_for(ops)
        for value in wanted - numbered:
            reason = unfit_reason(value) or "kernels that are not planned together use it"
            message = f"a hint asks for a buffer in LX that cannot be there: {reason}"
            raise HintError(message, where=_writer(value), hint='take the hint away, or ask for place="hbm"')
        numbers: dict[SSAValue, int] = {}
        found = list[Kernel]()
        for op in ops:
            operands = list(op.operands)
            for value in operands:
                if value not in numbers and value in numbered:
                    numbers[value] = len(numbers)
            buffers = tuple([numbers.get(value, OUTSIDE) for value in operands])
            copies = frozenset([n for n, value in enumerate(operands) if value in copied])
            wished = frozenset(
                [numbers[v] for v in operands if v in numbered and v not in copied and self.is_widened(v)]
            )
            required = wished | {numbers[value] for value in operands if value in wanted}
            candidates = self.candidates(op)[: 1 if op in self.fixed else None]
            throughout = frozenset([numbers[value] for value in operands if value in totals])
            found.append(Kernel(buffers, candidates, copies, required, wished, throughout))
        return with_spare(found, lambda number: self.spare(ops[number]), self.spec.lx_usable_bytes), list(numbers)

    def usual_us(self, op: kernel.KernelOp, local: frozenset[int]) -> float:
        """Return the time of a kernel as it is divided, if some operands are in the scratchpads."""
        return self.prices.us(self.candidates(op)[0], local)

    def is_widened(self, value: SSAValue) -> bool:
        """Return whether a buffer has a weight of few bits in a wider format."""
        return self.narrow and is_widened(value, self.widened)

    def moved(self) -> None:
        """Forget what is known of buffers, as kernels that write some of them have been replaced."""
        self.widened.clear()

    def floor_us(self, op: kernel.KernelOp, local: frozenset[int]) -> float:
        """Return the least time of a kernel in any loops, if some operands stay in the scratchpads throughout."""
        found = self.candidates(op)
        product = found[0].work.product
        if product is None:
            return min(self.prices.us(c, local) for c in found)
        # In a loop its rate may be better than in one piece; no loop gives it more rows to fill the array with.
        outside = sum(o.bytes for n, o in enumerate(found[0].work.operands) if n not in local)
        filled = filled_by(product.rows * product.shared_batch, self.parameters)
        arithmetic = arithmetic_us(product.macs, self.parameters, self.spec) / filled
        return max(arithmetic, roofline_us(product.macs, outside, self.parameters, self.spec))

    def trip_floor_us(self, op: kernel.KernelOp, cuts: Mapping[str, int], local: frozenset[int]) -> float:
        """Return a time that no division of a kernel is below in one trip of loops around it.

        Args:
            op: the kernel outside of the loops.
            cuts: into how many equal parts its loops are cut.
            local: operands that may be in the scratchpads.
        """
        key = shape_of(op, dict.fromkeys(op.space.extents, 1)), *cuts.items(), local
        if (known := self._floors.get(key)) is None:
            known = self._floors[key] = self._least_of_trip_us(op, cuts, local)
        return known

    def _least_of_trip_us(self, op: kernel.KernelOp, cuts: Mapping[str, int], local: frozenset[int]) -> float:
        descriptor, labels = describe_work(op)
        parts = {labels[name]: trips for name, trips in cuts.items()}
        dims = [replace(d, extent=max(1, d.extent // parts.get(d.label, 1))) for d in descriptor.dims]
        works = WorkByDivision(replace(descriptor, dims=tuple(dims)), labels)
        loops = [replace(lp, units=max(1, lp.units // cuts.get(lp.name, 1))) for lp in loops_of(op)]
        # What lies far apart may have fewer divisions, which is no reason to take less time.
        usual = divide(loops, (), self.spec)

        def us(splits: Mapping[str, int], held: frozenset[int]) -> float:
            return total_us(works.work(splits), self.parameters, scratchpad=False, local=held)

        if us(usual, frozenset()) < SHORT_US:
            return us(usual, local)
        return min(us(splits, local) for splits in divisions(loops, (), prod(usual.values()), self.spec))

    def has_slow_batch(self, op: kernel.KernelOp) -> bool:
        """Return whether a kernel is a product whose batch lies inside of the rows of an operand."""
        product = self.candidates(op)[0].work.product
        return product is not None and max(product.inside) >= self.parameters.pe_batched_from_batch

    def divide(self, op: kernel.KernelOp) -> None:
        """Divide a kernel as `divide-work` does.

        Raises:
            LoweringError: no split brings its operands within a core's reach.
        """
        key = shape_of(op, {d.name: 1 for d in op.space.data})
        if key not in self._usual:
            divide_kernel(op, self.spec)
            self._usual[key] = op.space
        op.space = self._usual[key]

    def candidates(self, op: kernel.KernelOp) -> tuple[DividedKernel, ...]:
        """Return the divisions of a kernel, the present one first: the only one of a short kernel."""
        key, held = self._key(op)
        if (known := self._known.get(key)) is None:
            known = self._known[key] = self._found(op, held)
        return known

    def spare(self, op: kernel.KernelOp) -> tuple[DividedKernel, ...]:
        """Return the other divisions of a kernel without a product, with which it may agree with others."""
        if op.is_product or op in self.fixed or hinted_divisions(op, self.spec) is not None:
            return ()
        key, held = self._key(op)
        if (known := self._spare.get(key)) is None:
            known = self._spare[key] = self._others(op, held)
        return known

    def _key(self, op: kernel.KernelOp) -> tuple[Hashable, Sequence[bool]]:
        """What the divisions of a kernel follow from, and which operands the scratchpads may hold."""
        written = len(op.operands) - 1
        held = [may_hold(value, written=number == written) for number, value in enumerate(op.operands)]
        held[written] &= not isinstance(op, GatherOp) or holds_rows(op)
        facts = [
            (isinstance(value.owner, TileOp), hinted_place(value), self.is_widened(value)) for value in op.operands
        ]
        return (shape_of(op, op.space_splits()), self.narrow, cores_of_rows(op), *held, *facts), held

    def refusals(
        self, op: kernel.KernelOp, considered: Sequence[DividedKernel], given: str = ""
    ) -> list[tuple[Mapping[str, int], str]]:
        """Return the divisions into equal slices that were not considered for a kernel, each with the reason.

        Args:
            op: the kernel.
            considered: the divisions that were, the usual one first.
            given: why legal ones were not, if none but the present one was.
        """
        known = {frozenset(c.splits.items()) for c in considered}
        usual, loops = considered[0], loops_of(op)
        least = int(prod(usual.splits.values()) * BUSY)
        hint = hint_of(op)
        given = GIVEN if op in self.fixed else HINTED if hint is not None and hint.division else given
        other = given or (TOO_SHORT if self.prices.us(usual, frozenset()) < SHORT_US else TOO_SLOW)
        found = list[tuple[Mapping[str, int], str]]()
        for splits, refusal in judged_divisions(loops, footprints(op, loops), self.spec):
            if frozenset(splits.items()) in known:
                continue
            few = Refusal.FEW_CORES if not given and prod(splits.values()) < least else None
            reason = refusal or few
            found.append((splits, reason.value if reason else other))
        return found

    def _others(self, op: kernel.KernelOp, held: Sequence[bool]) -> tuple[DividedKernel, ...]:
        considered = self.candidates(op)
        known, loops = [c.splits for c in considered], loops_of(op)
        works, slices = _works_of(op), OperandSlices(op, held, self._number)
        found = list[DividedKernel]()
        for splits in divisions(loops, footprints(op, loops), 2, self.spec):
            if splits not in known:
                found.append(DividedKernel(splits, works.work(splits), *slices.of(splits)))
        most_us = max(SLOW * min(self._all_held_us(c) for c in considered), SLOW_US)
        return tuple(c for c in found if self._all_held_us(c) <= most_us)

    def _found(self, op: kernel.KernelOp, held: Sequence[bool]) -> tuple[DividedKernel, ...]:
        usual, work = op.space_splits(), _works_of(op).work
        slices = OperandSlices(op, held, self._number)
        first = DividedKernel(usual, work(usual), *slices.of(usual))
        if (hinted := hinted_divisions(op, self.spec)) is not None:
            wishes = (s for s in hinted if s != usual)
            return (first, *(DividedKernel(splits, work(splits), *slices.of(splits)) for splits in wishes))
        # What keeps a buffer there may be slow.
        wanted = any(hinted_place(value) == "lx" or self.is_widened(value) for value in op.operands)
        short = self.prices.us(first, frozenset()) < SHORT_US and not wanted
        if short and (op.is_product or prod(usual.values()) == self.spec.cores_per_card):
            return (first,)
        least = 1 if wanted else prod(usual.values()) + 1 if short else int(prod(usual.values()) * BUSY)
        if (few := cores_of_rows(op)) is not None and not short:
            least = min(least, few)
        loops = loops_of(op)
        ways = divisions(loops, footprints(op, loops), least, self.spec)
        nowhere = (None,) * len(held), (0,) * len(held)
        # One core is no division, so `divide-work` would replace it by the usual one, which the buffers may not suit.
        others: list[Mapping[str, int]] = [splits for splits in ways if splits != usual and prod(splits.values()) > 1]
        if not wanted and self.narrow and (alone := _columns_alone(op, self.spec)) not in (None, usual, *others):
            others.append(alone)
        found = [DividedKernel(splits, work(splits), *nowhere) for splits in others]
        least = min(self._all_held_us(c) for c in (first, *found))
        kept = [c for c in found if wanted or self._all_held_us(c) <= max(SLOW * least, SLOW_US)]
        numbered = ((c, splits) for c in (first, *kept) for splits in _numbered(op, c.splits))
        return (first, *(DividedKernel(s, c.work, *slices.of(s)) for c, s in numbered if s is not usual))

    def _number(self, view: Hashable) -> int:
        """The number of a core's view of a tensor, the same for equal ones, also where several threads plan."""
        return self._views.setdefault(view, next(self._numbers))

    def _all_held_us(self, candidate: DividedKernel) -> float:
        return self.prices.us(candidate, frozenset(range(len(candidate.sizes))))


@fact
def _works_of(op: kernel.KernelOp) -> WorkByDivision:
    """The work of a kernel under any division."""
    return WorkByDivision(*describe_work(op))


@lru_cache(maxsize=4)
def _learned(spec: SpyreSpec, parameters: CostParameters) -> KernelChoices:
    """What plans have learned of kernels so far."""
    return KernelChoices(spec, parameters=parameters)


def _columns_alone(op: kernel.KernelOp, spec: SpyreSpec) -> Mapping[str, int] | None:
    """The division of an elementwise kernel in which each core has columns of its own, as products of few bits have."""
    lane = next(iter(op.lane_dims()), None) if not op.is_product and op.is_elementwise(0) else None
    loops = [] if lane is None else loops_of(op)
    cores = next((divisors(lp.units, spec.cores_per_card)[-1] for lp in loops if lp.name == lane), 1)
    splits = {lp.name: cores if lp.name == lane else 1 for lp in loops}
    return splits if cores > 1 and splits in divisions(loops, footprints(op, loops), cores, spec) else None


def _numbered(op: kernel.KernelOp, splits: Mapping[str, int]) -> list[Mapping[str, int]]:
    """A division with every numbering of the cores that neighbours may take."""
    if op.is_product:
        other = columns_first(op, splits)
    else:
        other = last_first(splits) if joins_rows(op) or cores_of_rows(op) is not None else None
    return [splits] if other is None else [splits, other]


def shape_of(op: kernel.KernelOp, splits: Mapping[str, int]) -> Hashable:
    """Return the facts that divisions and their times follow from: not the function itself, but its family."""
    said = {name: a for name, a in op.properties.items() if name not in ("function", "op_info", "space")}
    family = op.entry.family if isinstance(op, kernel.ComputeOp) else None
    loops = tuple([(d.name, d.extent, splits[d.name]) for d in op.space.data])
    return type(op), family, loops, *said.items(), *[value.type for value in op.operands], op.attributes.get(HINT)


def _asked_for(ops: Sequence[kernel.KernelOp]) -> set[SSAValue]:
    """Buffers that hints want in the scratchpads, and whose writer is here."""
    return {op.output for op in ops if hinted_place(op.output) == "lx"}


def _writer(value: SSAValue) -> str:
    writers = [u.operation for u in value.uses if isinstance(u.operation, kernel.KernelOp)]
    writers = [op for op in writers if op.output is value]
    return placed(writers[0].function_name, writers[0].location) if writers else "a buffer"


__all__ = ["BUSY", "KernelChoices", "shape_of"]
