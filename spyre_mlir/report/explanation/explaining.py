"""The plans of kernels, explained by what the planner looked at: its candidates, its prices, its searches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from spyre_mlir.dialects.ir.module_control import refuse_control_flow
from spyre_mlir.dialects.places import source_of
from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.attributes import DeviceTensor
from spyre_mlir.dialects.spyre.kernel import KernelOp
from spyre_mlir.dialects.spyre.static_loop import enclosing_loops, loop_bounds, trips_of
from spyre_mlir.hw.cost import cost
from spyre_mlir.hw.sticks import UNIT
from spyre_mlir.options import CompileOptions
from spyre_mlir.pipeline import PassWatcher
from spyre_mlir.planning.alternatives import alternatives
from spyre_mlir.planning.divisions import DividedKernel, Division, with_local
from spyre_mlir.report.explanation.choice_tables import ExplainedChoice, Price
from spyre_mlir.report.explanation.explained import (
    ExplainedKernel,
    ExplainedLoop,
    ExplainedOperand,
    ExplainedPlan,
    Explanation,
    RefusedDivisions,
    divided_text,
)
from spyre_mlir.report.explanation.planned_program import NamedKernel, PlannedProgram
from spyre_mlir.report.timing import three_digits
from spyre_mlir.text.render import value_names
from spyre_mlir.transforms.kernel_plans.kernel_choices import KernelChoices
from spyre_mlir.transforms.kernel_plans.memory_reasons import memory_reason
from spyre_mlir.transforms.kernel_plans.plan_record import Loops, PlannedBlock, TriedLoop
from spyre_mlir.transforms.utils.kernels.loops import whole_loops

OTHERS = 2  # plans beside the chosen one
MOST = 12  # kernels that are explained at once
SHOWN_CHANGES = 4
ROUNDING = 1e-9
NOT_PLANNED = "the planner does not divide it"


def explain(
    name: str, module: ModuleOp, options: CompileOptions, wanted: str, watch: PassWatcher | None = None
) -> Explanation:
    """Explain the plans of the kernels that go by a name; see `PlannedProgram.named`.

    Args:
        name: of the program.
        module: at the aten level, without calls; it is not modified.
        options: of the compilation.
        wanted: what to explain.
        watch: is told of every pass.

    Raises:
        InputError: no kernel goes by the name.
        UnsupportedError: host steps are refused, all of them are listed; or the host decides what runs.
        LoweringError: the program does not fit the machine.
    """
    refuse_control_flow(module, "an explanation")
    program = PlannedProgram.of(module, options, watch)
    found = program.named(wanted)
    texts = value_names(program.module)
    kernels = tuple(_Explainer(program, named, texts).kernel() for named in found[:MOST])
    return Explanation(name, wanted, kernels, tuple(named.name for named in found[MOST:]))


@dataclass(frozen=True)
class _Explainer:
    """Explains one kernel.

    Attributes:
        program: that it is in.
        named: the kernel.
        texts: names of the values of the program.
    """

    program: PlannedProgram
    named: NamedKernel
    texts: Mapping[SSAValue, str]

    @property
    def op(self) -> KernelOp:
        """The kernel in the finished program."""
        return self.named.op

    def kernel(self) -> ExplainedKernel:
        """Explain the kernel."""
        record, named, block = self.program.record, self.named, self.block
        trips = tuple(loop_bounds(loop).trips for loop in enclosing_loops(self.op))[::-1]
        origin = record.origin(self.op)
        considered = self._considered()
        refused = self.choices.refusals(self.op, considered, NOT_PLANNED if block is None else "")
        reason = self.program.reasons.get(self.op)
        return ExplainedKernel(
            name=named.name,
            function=self.op.function_name,
            operation=named.operation,
            source=_place(named),
            loops=dict(self.op.space.extents),
            whole=whole_loops(self.op),
            runs=trips_of(self.op) * named.calls,
            trips=trips,
            operands=self._operands(),
            chosen=self._chosen(),
            others=self._others(),
            considered=len({frozenset(c.splits.items()) for c in considered}),
            refused=_by_reason(refused),
            tried=tuple(_loop(t, record.taken.get(origin)) for t in record.tried(origin)),
            layout="" if reason is None else str(reason),
            layouts=() if reason is None else self.program.layouts.of(reason),
            places=self._places(),
            loops_around=self._loops_around(trips),
        )

    def _places(self) -> tuple[ExplainedChoice, ...]:
        number = self.program.plans.numbers.get(self.op)
        memory = kernel.device_tensor(self.op.output).space
        return () if number is None else self.program.plans.place(number, memory)

    def _loops_around(self, trips: Sequence[int]) -> tuple[ExplainedChoice, ...]:
        record, number = self.program.record, self.program.plans.numbers.get(self.op)
        if number is None:
            return ()
        rank = self.program.ranks.get(source_of(self.op.location).number)
        origin = record.origin(self.op)
        return self.program.plans.loops(number, trips, record.tried(origin), record.taken.get(origin), rank)

    @cached_property
    def block(self) -> PlannedBlock | None:
        """The block in which the planner divided it; None for a copy that was made later, or if it divided nothing."""
        return self.program.record.block(self.op)

    @cached_property
    def choices(self) -> KernelChoices:
        """The divisions that kernels may have."""
        return KernelChoices(self.program.spec) if self.block is None else self.block.choices

    @cached_property
    def number(self) -> int:
        """Of the kernel in its block."""
        return 0 if self.block is None else self.block.number(self.op)

    def _considered(self) -> Sequence[DividedKernel]:
        if self.block is None:
            return self.choices.candidates(self.op)[:1]
        return self.block.kernels[self.number].candidates

    def _operands(self) -> tuple[ExplainedOperand, ...]:
        touched = [operand.per_core for operand in self._considered()[0].work.operands]
        if self.block is not None:
            touched = [o.per_core for o in self._choice(self.block, self.block.plan).work.operands]
        found: list[ExplainedOperand] = []
        for number, (value, tensor) in enumerate(zip(self.op.operands, self.op.tensors, strict=True)):
            placed = value.owner.offset if isinstance(value.owner, kernel.AllocOp) and tensor.space == "lx" else None
            found.append(
                ExplainedOperand(
                    value=self.texts.get(value, ""),
                    written=number == len(self.op.inputs),
                    shape=tuple(tensor.shape),
                    layout=_layout(tensor),
                    memory=tensor.space,
                    address=None if placed is None else placed.value.data,
                    core_bytes=touched[number],
                    reason=memory_reason(self.op, number, self.block),
                )
            )
        return tuple(found)

    def _choice(self, block: PlannedBlock, plan: Division) -> DividedKernel:
        return block.kernels[self.number].candidates[plan.chosen[self.number]]

    def _chosen(self) -> ExplainedPlan:
        """The plan of the finished program."""
        local = frozenset(n for n, tensor in enumerate(self.op.tensors) if tensor.space == "lx")
        found = self._considered()[0] if self.block is None else self._choice(self.block, self.block.plan)
        planned = local if self.block is None else self.block.plan.held[self.number]
        differs = [f"%{self._value(n)} is in LX, the search had it in HBM" for n in sorted(local - planned)]
        differs += [f"%{self._value(n)} is in HBM, the search had it in LX" for n in sorted(planned - local)]
        us = self.choices.prices.us(found, local) if self.block is None else self.block.plan.us
        copies = 0.0 if self.block is None else self._copies_us(self.block.plan, found)
        return self._plan(found, local, us, copies, differs)

    def _others(self) -> tuple[ExplainedPlan, ...]:
        """The quickest plans that differ in the division of this kernel."""
        block = self.block
        if block is None:
            return ()
        chosen, made = block.plan.chosen[self.number], list[ExplainedPlan]()
        for other in alternatives(block.kernels, self.number, self.choices.prices, OTHERS, chosen):
            found, local = self._choice(block, other.plan), other.plan.held[self.number]
            copies = self._copies_us(other.plan, found)
            made.append(self._plan(found, local, other.plan.us, copies, self._changes(block, other.plan)))
        return tuple(made)

    def _copies_us(self, plan: Division, found: DividedKernel) -> float:
        """The time of the copies to the scratchpads that a plan makes before this kernel."""
        more = plan.times[self.number] - self.choices.prices.us(found, plan.held[self.number])
        return more if more > ROUNDING * plan.us else 0.0

    def _plan(
        self, found: DividedKernel, local: frozenset[int], us: float, copies: float, differs: Sequence[str]
    ) -> ExplainedPlan:
        work = with_local(found.work, local)
        price = Price.of(work, cost(work, self.choices.prices.parameters, self.program.spec), copies)
        lx = tuple(self._value(n) for n in sorted(local))
        return ExplainedPlan(dict(found.splits), work.cores, price, us, lx, tuple(differs))

    def _value(self, number: int) -> str:
        return self.texts.get(self.op.operands[number], "")

    def _changes(self, block: PlannedBlock, plan: Division) -> list[str]:
        """What a plan does otherwise than the chosen one, beside the division of this kernel."""
        names = {named.op: named.name for named in self.program.kernels}
        changes: list[str] = []
        for number, (op, found) in enumerate(zip(block.ops, block.kernels, strict=True)):
            if number != self.number and plan.chosen[number] != block.plan.chosen[number]:
                splits = found.candidates[plan.chosen[number]].splits
                changes.append(f"divides {names.get(op, '')} {op.function_name} {divided_text(splits)}")
        if len(changes) > SHOWN_CHANGES:
            changes[SHOWN_CHANGES:] = [f"divides {len(changes) - SHOWN_CHANGES} more kernels otherwise"]
        for memory, moved in (("HBM", block.plan.local - plan.local), ("LX", plan.local - block.plan.local)):
            if moved:
                values = ", ".join(f"%{self.texts.get(block.buffer(b), '')}" for b in sorted(moved))
                changes.append(f"has {values} in {memory}")
        return changes


def _place(named: NamedKernel) -> str:
    """Line and module of the first call, and how many more calls there are."""
    places = [
        " ".join(
            filter(
                None,
                (
                    f"{Path(s.file).name}:{s.line}" if s.file is not None else "",
                    f"({s.module})" if s.module else "",
                ),
            )
        )
        for s in named.sources
    ]
    more = f" and {len(places) - 1} more" if len(places) > 1 else ""
    return f"{places[0]}{more}" if places and places[0] else ""


def _layout(tensor: DeviceTensor) -> str:
    names = ["unit" if d == UNIT else str(d) for d in (*tensor.layout.order, tensor.layout.stick)]
    return f"order {' '.join(names[:-1])}, stick {names[-1]}"


def _by_reason(refused: Sequence[tuple[Mapping[str, int], str]]) -> tuple[RefusedDivisions, ...]:
    found: dict[str, list[Mapping[str, int]]] = {}
    for splits, reason in refused:
        found.setdefault(reason, []).append(dict(splits))
    return tuple(RefusedDivisions(reason, tuple(divisions)) for reason, divisions in found.items())


def _loop(tried: TriedLoop, taken: tuple[Loops, int] | None) -> ExplainedLoop:
    usual, is_taken = three_digits(tried.usual_us), tried.us is not None and (tried.loops, len(tried.ops)) == taken
    if is_taken and tried.us is not None:
        why = ", as a hint asks" if tried.hinted else ""
        said = f"taken{why}: {three_digits(tried.us)} us instead of {usual}"
    elif tried.us is not None:
        said = f"{three_digits(tried.us)} us instead of {usual}: less is gained than elsewhere"
    elif tried.most_us is None:
        said = f"at least {three_digits(tried.least_us)} us instead of {usual}: less is gained than elsewhere"
    else:
        said = f"no division takes less than {three_digits(tried.most_us)} us, which would be a gain; {usual} without"
    return ExplainedLoop(dict(tried.loops), len(tried.ops), tried.usual_us, tried.us, is_taken, said)


__all__ = ["explain"]
