"""Layouts of a planned function, and where it may lose time by them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from xdsl.dialects import func
from xdsl.ir import Operation, SSAValue

from spyre_mlir.dialects.spyre.layout_choices import NO_LOOP, LayoutChoice, layout_said
from spyre_mlir.dialects.spyre.loop import NestOp
from spyre_mlir.dialects.target import spec_at
from spyre_mlir.dialects.tensors import shape_of
from spyre_mlir.hw.cost import roofline_us
from spyre_mlir.hw.cost_parameters import CostParameters
from spyre_mlir.hw.formats import DL16
from spyre_mlir.hw.spec import STICK_BYTES
from spyre_mlir.hw.sticks import UNIT, StickLayout
from spyre_mlir.ops.native import contractions
from spyre_mlir.transforms.loop_to_kernel.buffers import PlannedBuffer, PlannedKernel
from spyre_mlir.transforms.loop_to_kernel.choose_lane import usable_cores
from spyre_mlir.transforms.loop_to_kernel.conversion import FunctionPlan
from spyre_mlir.transforms.loop_to_kernel.layout_planner import RESTICKIFY_STEP, LayoutPlanner, block_of, lanes_of
from spyre_mlir.transforms.loop_to_kernel.layout_reasons import legal_layouts

# A tensor of more elements is not tried with one of them per stick, unless its nest reads as many sticks.
FEW_ELEMENTS = 1024

_PRODUCT = str(contractions.matmul.opfunc)


@dataclass(frozen=True)
class Spot:
    """A place where layouts may lose time: a tensor is laid out again, or a nest is slow (`is_slow`).

    Attributes:
        sticks: that are read and written there.
        ops: the op that makes the tensor, and the one that it is laid out again for; or the nest.
    """

    sticks: int
    ops: tuple[Operation, ...]


@dataclass
class PlannedLayouts:
    """Layouts of a planned function.

    Attributes:
        function: as it was before it was planned.
        planner: has its kernels and buffers.
        choices: layouts of the ops that choose theirs.
        open: legal layouts of those that no text and no hint decides, if there are several.
        spots: where they may lose time, the largest first.
        numbers: places of the ops.
        relaid_for: by buffer that a change of layout makes, the op that it is made for.
    """

    function: func.FuncOp
    planner: LayoutPlanner
    choices: Mapping[Operation, LayoutChoice]
    open: Mapping[Operation, Sequence[LayoutChoice]]
    spots: Sequence[Spot] = ()
    numbers: Mapping[Operation, int] = field(default_factory=dict[Operation, int])
    relaid_for: dict[PlannedBuffer, Operation] = field(default_factory=dict[PlannedBuffer, Operation])
    _values: Mapping[PlannedBuffer, SSAValue] = field(default_factory=dict[PlannedBuffer, SSAValue])
    _reads: dict[tuple[SSAValue, Operation], list[StickLayout]] = field(
        default_factory=dict[tuple[SSAValue, Operation], list[StickLayout]]
    )

    @staticmethod
    def of(plan: FunctionPlan) -> PlannedLayouts:
        """Return the layouts of a planned function."""
        chosen = plan.planner.chosen
        choices = {op: choice for op, choice in chosen.choices().items() if choice.stick is not None}
        made = PlannedLayouts(plan.function, plan.planner, choices, _open(plan.planner))
        made.numbers = {op: number for number, op in enumerate(plan.function.body.block.ops)}
        made._values = {b: value for value, forms in plan.planner.versions.items() for b in forms.buffers}
        spots = made._changes() + made._slow()
        made.spots = sorted(spots, key=lambda spot: -spot.sticks)
        return made

    def is_sent(self, value: SSAValue) -> bool:
        """Return whether the host sends a tensor at every call."""
        return self.planner.hosts.get(value) is False

    def least_us(self, parameters: CostParameters) -> float:
        """Return a time that no plan of the function is below: that of its products."""
        spec, found = spec_at(self.function), 0.0
        for step in self.kernels:
            if step.function == _PRODUCT:
                macs = prod(dim.extent for dim in step.space)
                moved = sum(buffer.sticks for buffer, _ in step.inputs if buffer.host is not None)
                found += roofline_us(macs, moved * STICK_BYTES, parameters, spec)
        return found

    @property
    def kernels(self) -> list[PlannedKernel]:
        """All kernels."""
        return [step for step in self.planner.items if isinstance(step, PlannedKernel)]

    def kernels_of(self, ops: Collection[Operation]) -> int:
        """Return how many kernels ops have, those of their parts and changes of layout for them included."""
        return sum(step.origin in ops for step in self.kernels)

    @property
    def sticks(self) -> int:
        """Sticks that all kernels read and write."""
        return sum(buffer.sticks for step in self.kernels for buffer, _ in (*step.inputs, step.output))

    def read(self, value: SSAValue, reader: Operation) -> list[StickLayout]:
        """Return the layouts in which an op reads a tensor, one for each stick dimension."""
        found = self._reads.get((value, reader)) or [b.layout for b in self.planner.of(value).buffers[:1]]
        return list({layout.stick: layout for layout in found}.values())

    def _changes(self) -> list[Spot]:
        """Changes of layout; notes on the way what kernels read."""
        chosen, found = self.planner.chosen, list[Spot]()
        for step in self.kernels:
            if (origin := step.origin) is None:
                continue
            if step.function != RESTICKIFY_STEP:
                for buffer, _ in step.inputs:
                    if (value := self._values.get(buffer)) is not None:
                        self._reads.setdefault((value, origin), []).append(buffer.layout)
                continue
            source, output = step.inputs[0][0], step.output[0]
            self.relaid_for[output] = origin
            value = self._values.get(source)
            maker = [] if value is None or not isinstance(value.owner, Operation) else [value.owner]
            ops = dict.fromkeys((*(chosen.split.get(op, op) for op in maker), origin))
            found.append(Spot(source.sticks + output.sticks, tuple(ops)))
        return found

    def _slow(self) -> list[Spot]:
        return [
            Spot(max([b.sticks for v in (*op.operands, *op.results) for b in self.planner.of(v).buffers[:1]]), (op,))
            for op, legal in self.open.items()
            if is_slow(op, self.choices[op], legal)
        ]


def _sticks_read(op: Operation) -> list[int]:
    """Sticks of the inputs of a nest, as far as these are full."""
    return [prod(shape_of(value)) // lanes_of(DL16.name) for value in op.inputs] if isinstance(op, NestOp) else []


def _open(planner: LayoutPlanner) -> dict[Operation, Sequence[LayoutChoice]]:
    chosen, found = planner.chosen, dict[Operation, Sequence[LayoutChoice]]()
    for op, buffer in chosen.made.items():
        if op in chosen.split or op in chosen.hinted or layout_said(op) is not None or buffer.format != DL16.name:
            continue
        few = prod(buffer.shape) <= max([FEW_ELEMENTS, *_sticks_read(op)])
        legal = [choice for choice in legal_layouts(op, buffer) if few or choice.stick != UNIT]
        if len(legal) > 1:
            found[op] = legal
    return found


def is_slow(op: Operation, choice: LayoutChoice, legal: Sequence[LayoutChoice]) -> bool:
    """Return whether a nest can use fewer cores than with another loop in the lanes, or has none in the lanes."""
    if not isinstance(op, NestOp):
        return False
    if choice.lanes == NO_LOOP:
        return True
    spec, lanes = spec_at(op), block_of(DL16.name)
    cores = {one.lanes: usable_cores(op.space.data, op.reduced, one.lanes, lanes, spec) for one in legal}
    return choice.lanes in cores and cores[choice.lanes] < max(cores.values())


__all__ = ["PlannedLayouts", "Spot", "is_slow"]
