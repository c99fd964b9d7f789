"""Predicted times of programs at the loop level: they are lowered as far as the planner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.dialects.spyre.kernel import KernelOp, RestickifyOp, device_tensor
from spyre_mlir.dialects.target import spec_of
from spyre_mlir.hw.cost_parameters import CostParameters
from spyre_mlir.hw.spec import STICK_BYTES
from spyre_mlir.hw.sticks import UNIT
from spyre_mlir.planning.divisions import divide_within
from spyre_mlir.transforms.buffer_layouts.choose_rows import ChooseRowsPass
from spyre_mlir.transforms.buffer_layouts.order_batches import OrderBatchesPass
from spyre_mlir.transforms.buffer_layouts.view_copies import ViewCopiesPass
from spyre_mlir.transforms.kernel_plans.divided_blocks import divide_as_usual, kernels_in
from spyre_mlir.transforms.kernel_plans.kernel_choices import KernelChoices
from spyre_mlir.transforms.kernel_plans.wished_buffers import without_impossible
from spyre_mlir.transforms.loop_to_kernel.buffers import PlannedKernel
from spyre_mlir.transforms.loop_to_kernel.conversion import FunctionPlan
from spyre_mlir.transforms.loop_to_kernel.layout_planner import RESTICKIFY_STEP
from spyre_mlir.transforms.plan import PlanPass
from spyre_mlir.transforms.utils.cost_numbers import given_numbers
from spyre_mlir.transforms.utils.hints import settle_hints
from spyre_mlir.transforms.utils.kernels.launches import launch_numbers
from spyre_mlir.transforms.utils.kernels.widened_weights import widens_any

MOST_IN_FULL = 150  # kernels of a module
FULL_WORK = 5  # of a kernel that is priced with loops, when 1 is that of one without


@dataclass(frozen=True)
class LayoutPrice:
    """Predicted time of a function.

    Attributes:
        us: in all.
        lost_us: what layouts may have to do with: changes of layout, kernels of one element per stick, and the part of
            others that idle cores would take.
        kernels: how many there are.
    """

    us: float
    lost_us: float
    kernels: int


def edge_us(function: FunctionPlan, parameters: CostParameters) -> float:
    """Return the time that changes of layout at the edge of a region take from what is beyond it.

    A tensor that is laid out again goes through device memory: it is written there before, or read there after.

    Args:
        function: of a region; its text says the layouts of what lies beyond the edge.
        parameters: of the cost model.
    """
    said, sticks = function.planner.arguments, 0
    ends = [function.results[number] for number in said.results]
    for step in function.planner.items:
        if isinstance(step, PlannedKernel) and step.function == RESTICKIFY_STEP:
            source, made = step.inputs[0][0], step.output[0]
            sticks += source.sticks if source.host in said.arguments else 0
            sticks += made.sticks if made in ends else 0
    return parameters.memory_us(sticks * STICK_BYTES)


@dataclass
class LayoutPricing:
    """Prices of functions whose layouts are planned.

    Attributes:
        context: has the card.
        numbers: of the cost model, as for pass `plan`.
        work: so far, in kernels whose layouts are planned, or that are priced; with loops one counts `FULL_WORK` times.
    """

    context: Context
    numbers: tuple[str, ...] = ()
    work: int = 0

    @property
    def parameters(self) -> CostParameters:
        """The numbers of the cost model."""
        return given_numbers(self.numbers)

    def quick(self, module: ModuleOp, function: FunctionPlan, most_us: float = inf) -> LayoutPrice | None:
        """Return the price without loops; None if it is beyond `most_us`, or cannot be found.

        Args:
            module: of the function; it is lowered.
            function: its only function, planned.
            most_us: the highest price of interest.
        """
        self._write(module, [function])
        return self._quick(module, function, most_us)

    def full(self, module: ModuleOp, functions: Sequence[FunctionPlan]) -> list[float] | None:
        """Return the times of planned functions as pass `plan` predicts them; None if it does not plan one of them.

        Loops are left out of a module of more than `MOST_IN_FULL` kernels.

        Args:
            module: of the functions; it is lowered.
            functions: all of its functions.
        """
        self._write(module, functions)
        kernels = sum(len(kernels_in(function.function.body.block)) for function in functions)
        if kernels > MOST_IN_FULL:
            return self._without_loops(module, functions)
        self.work += FULL_WORK * kernels
        planned = PlanPass(numbers=self.numbers).predicted_us(self.context, module)
        times = [us for us in planned if us is not None]
        return times if len(times) == len(functions) else None

    def without_loops(self, module: ModuleOp, functions: Sequence[FunctionPlan]) -> list[float] | None:
        """Return the times of planned functions without loops; None if one of them cannot be planned.

        Args:
            module: of the functions; it is lowered.
            functions: all of its functions.
        """
        self._write(module, functions)
        return self._without_loops(module, functions)

    def _without_loops(self, module: ModuleOp, functions: Sequence[FunctionPlan]) -> list[float] | None:
        prices = [self._quick(module, function, inf) for function in functions]
        times = [price.us for price in prices if price is not None]
        return times if len(times) == len(functions) else None

    def _quick(self, module: ModuleOp, function: FunctionPlan, most_us: float) -> LayoutPrice | None:
        choices = KernelChoices.known(spec_of(self.context, module), self.parameters, narrow=widens_any(module))
        block = function.function.body.block
        ops = kernels_in(block)
        settle_hints(ops, choices.spec)
        self.work += len(ops)
        if not ops or not divide_as_usual(block, choices):
            return None
        kernels, _ = choices.sequence(ops, launch_numbers(block))
        found = divide_within(without_impossible(kernels, choices.prices), most_us, choices.prices)
        if found is None:
            return None
        cores, lost_us = choices.spec.cores_per_card, 0.0
        for op, kernel, us, number in zip(ops, kernels, found.times, found.chosen, strict=True):
            busy = kernel.candidates[number].work.cores / cores
            lost_us += us if isinstance(op, RestickifyOp) or _is_sparse(op) else us * (1 - busy)
        return LayoutPrice(found.us, lost_us, len(ops))

    def _write(self, module: ModuleOp, functions: Sequence[FunctionPlan]) -> None:
        for function in functions:
            function.write()
        for pass_ in (ViewCopiesPass, ChooseRowsPass, OrderBatchesPass):
            pass_(numbers=self.numbers).apply(self.context, module)


def _is_sparse(op: KernelOp) -> bool:
    """Whether a kernel reads and writes one element per stick."""
    return all(device_tensor(value).layout.stick == UNIT for value in op.operands)


__all__ = ["LayoutPrice", "LayoutPricing", "edge_us"]
