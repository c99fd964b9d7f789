"""Planning of the functions of a module: every op becomes kernels on buffers whose layouts are known in the end.

Nothing is changed before all functions are planned: who asks for layouts alone leaves the module as it is.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.traits import SymbolTable

from spyre_mlir.dialects.argument_notes import PREPARED_KINDS, kind_of, overwritten, placed_arguments
from spyre_mlir.dialects.ir.control import ControlOp, ForLoopOp
from spyre_mlir.dialects.ir.functions import functions
from spyre_mlir.dialects.ir.module_control import carried_arguments
from spyre_mlir.dialects.spyre import host, loop
from spyre_mlir.dialects.spyre.attributes import DeviceTensorType
from spyre_mlir.dialects.spyre.hints import hint_of
from spyre_mlir.dialects.spyre.layout_choices import LAYOUT, LayoutError, layout_said
from spyre_mlir.dialects.spyre.loop_blocks import BlockOp, PutOp
from spyre_mlir.dialects.target import spec_of
from spyre_mlir.errors import LoweringError, UnsupportedError
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.transforms.loop_to_kernel.buffers import Define, PlannedBuffer, PlannedHostOp
from spyre_mlir.transforms.loop_to_kernel.device_forms import WeightRoom
from spyre_mlir.transforms.loop_to_kernel.emission import planned_results, returned_buffer, write_program
from spyre_mlir.transforms.loop_to_kernel.host_blocks import lower_blocks
from spyre_mlir.transforms.loop_to_kernel.later_reads import LaterReads
from spyre_mlir.transforms.loop_to_kernel.layout_planner import RELAID, LayoutPlanner
from spyre_mlir.transforms.loop_to_kernel.layout_text.argument_layouts import ArgumentLayouts, drop_layouts, say_layouts
from spyre_mlir.transforms.loop_to_kernel.layout_text.hinted_layouts import say_hinted_layouts
from spyre_mlir.transforms.loop_to_kernel.moved_weights import fold_into_weight
from spyre_mlir.transforms.loop_to_kernel.operators.destinations import lower_constant, lower_empty
from spyre_mlir.transforms.loop_to_kernel.operators.gathers import check_table, lower_gather
from spyre_mlir.transforms.loop_to_kernel.operators.nests import lower_nest
from spyre_mlir.transforms.loop_to_kernel.region_plans import PlannedRegion, check_host_step
from spyre_mlir.transforms.loop_to_kernel.slice_loops import PlannedLoop, fits_bundle
from spyre_mlir.transforms.utils.numerics.integer_origins import Origins
from spyre_mlir.transforms.utils.numerics.kept_float32 import check_names, kept_ops
from spyre_mlir.transforms.utils.rebuild import Emitter, describe_location, install, try_each


@dataclass
class FunctionPlan:
    """A function with all its layouts, before any of its kernels is written.

    Attributes:
        function: as it was.
        planner: has its kernels and buffers.
        region: what its calls need, if it is the function of a region.
        results: buffers of what a program returns; None for a host tensor.
    """

    function: func.FuncOp
    planner: LayoutPlanner
    region: PlannedRegion | None = None
    results: list[PlannedBuffer | None] = field(default_factory=list["PlannedBuffer | None"])

    def finish(self, returned: func.ReturnOp, spec: SpyreSpec, *, checked: bool) -> None:
        """Settle all layouts, once every op is planned, and check those of arguments if wanted."""
        if self.region is None:
            self.results = planned_results(self.planner, returned, spec)
            if checked:
                self.planner.arguments.check(self.function, self.sent, self.results)
        else:
            self.region.settle(self.planner, returned, spec)

    @property
    def sent(self) -> list[PlannedBuffer]:
        """Buffers that the host fills."""
        defined = (item.buffer for item in self.planner.items if isinstance(item, Define))
        return [buffer for buffer in defined if buffer.host is not None]

    def say(self) -> None:
        """Write the layouts of arguments and results into the text; the function of a region has none of its own."""
        if self.region is None:
            say_layouts(self.function, self.sent, self.results)

    def take_back(self) -> None:
        """Take the parts of nests that were made for the plan out of the function."""
        for part in reversed(self.planner.chosen.split):
            if part.parent is not None:
                Rewriter.erase_op(part)

    def write(self) -> None:
        """Replace the body by kernels."""
        emitter, returned = Emitter(), self.function.get_return_op()
        if returned is None:
            raise ValueError("a function that does not return")
        if self.region is None:
            write_program(self.planner, returned, self.results, emitter)
        else:
            self.region.write(self.planner, returned, emitter)
        install(self.function.body.block, emitter.ops)
        drop_layouts(self.function)
        if self.region is not None:
            self.region.drop_old(self.function)


@dataclass(frozen=True)
class PlansLayouts(ModulePass):
    """A pass that plans the functions of a module: to write the layouts, or the kernels.

    Attributes:
        keep_float32: as in `ConvertSpyreLoopToSpyreKernelPass`.
        keep_float32_in: the same.
        why: whether to note why layouts are as they are, and kernels inserted; for explanations.
        relaid: sticks that each stick of a restickify counts for where layouts are chosen; see `weight_of`.
    """

    keep_float32: bool = False
    keep_float32_in: tuple[str, ...] = ()
    why: bool = False
    relaid: float = RELAID

    def planned(self, ctx: Context, module: ModuleOp, *, checked: bool = True) -> list[FunctionPlan]:
        """Plan every function of a module, the functions of regions before their first callers.

        Args:
            ctx: has the card.
            module: at the loop level; nothing is changed but that layouts which hints ask for are said, and that nests
                have parts before them (`ChosenLayouts.split`).
            checked: whether arguments have to have all the layouts that the text says, and no others.

        Raises:
            UnsupportedError, LoweringError: an op cannot be lowered.
            InputError: a layout that the text or a hint says cannot be followed.
        """
        _check_level(module)
        calls = [op.callee for op in module.walk() if isinstance(op, func.CallOp)]
        loops = [op.body for op in module.walk() if isinstance(op, ForLoopOp)]
        called = {callee.root_reference.data for callee in (*calls, *loops)}
        check_names(module, self.keep_float32_in)
        hinted = say_hinted_layouts(module)
        conversion = _Conversion(spec_of(ctx, module), self.keep_float32, self.keep_float32_in, hinted, checked)
        for function in functions(module):
            if function.sym_name.data not in called:
                conversion.plan(
                    FunctionPlan(function, LayoutPlanner(keep_float32=self.keep_float32, relaid=self.relaid))
                )
        return conversion.planned


def _check_level(module: ModuleOp) -> None:
    """Refuse a program that has device tensors: its layouts are those of its kernels."""
    for op in module.walk():
        if any(isinstance(value.type, DeviceTensorType) for value in (*op.operands, *op.results)):
            raise LoweringError(
                f"{op.name} is an op of a level behind this pass",
                where=f"{op.name} at {describe_location(op)}",
                hint="--to goes on from where a program is",
            )


@dataclass
class _Conversion:
    """The conversion of a module; the functions of regions are planned at their first calls."""

    spec: SpyreSpec
    keep_float32: bool
    keep_float32_in: tuple[str, ...]
    hinted: Collection[Operation]
    checked: bool
    regions: dict[str, PlannedRegion] = field(default_factory=dict[str, PlannedRegion])
    planned: list[FunctionPlan] = field(default_factory=list[FunctionPlan])

    def plan(self, made: FunctionPlan) -> None:
        """Plan a function; its planner knows the arguments that are no host tensors."""
        function, planner = made.function, made.planner
        planner.chosen.hinted = self.hinted
        if made.region is None:
            planner.arguments = ArgumentLayouts.of(function)
        for number, argument in enumerate(function.body.block.args):
            if argument not in planner.versions:
                planner.hosts[argument] = kind_of(function, number) in PREPARED_KINDS
        planner.placed |= {function.body.block.args[number] for number in placed_arguments(function)}
        planner.carried |= carried_arguments(function)
        planner.written |= {function.body.block.args[number] for number in overwritten(function)}
        prepared: dict[SSAValue, bool] = {a: planner.hosts.get(a, False) for a in function.body.block.args}
        weights = [a for a, ahead in prepared.items() if ahead]
        planner.room = WeightRoom.of(weights, region=planner.given is not None)
        planner.origins = Origins(function, prepared, planner.given)
        planner.kept = kept_ops(function, self.keep_float32_in)
        planner.later = LaterReads(function.body.block, keep_float32=self.keep_float32, relaid=planner.relaid).cost
        try_each(function.body.block, lambda op: self._op(op, made), lambda op: _stand_in(op, planner))
        self.planned.append(made)

    def _op(self, op: Operation, made: FunctionPlan) -> None:
        p = made.planner
        p.origin = op
        if not fold_into_weight(p, op):
            self._lower(op, made)
        if layout_said(op) is not None and op not in p.chosen:
            hint = hint_of(op)
            said = LAYOUT if hint is None or hint.layout is None else "the hint about its layout"
            raise LayoutError(
                "no tensor with a layout of its own is made here: it lies as its operand, or as its readers like it",
                hint=f"take {said} away",
            )

    def _lower(self, op: Operation, made: FunctionPlan) -> None:
        p = made.planner
        match op:
            case loop.NestOp():
                lower_nest(p, op)
            case loop.EmptyOp():
                lower_empty(p, op)
            case loop.LoopGatherOp():
                lower_gather(p, op, self.spec)
                check_table(p, op, self.spec)
            case loop.LoopConstantOp():
                lower_constant(p, op)
            case BlockOp() | PutOp():
                lower_blocks(p, op)
            case ForLoopOp() if p.given is None:
                self._for_loop(p, op)
            case host.LoopHostOp() | ControlOp():
                _on_host(p, op)
            case func.ReturnOp():
                made.finish(op, self.spec, checked=self.checked)
            case func.CallOp():
                self._call(p, op)
            case _:
                raise UnsupportedError(f"{op.name} at the loop level", hint="run convert-aten-to-spyre-loop first")

    def _call(self, p: LayoutPlanner, op: func.CallOp) -> None:
        """Plan a call, and at the first one the function."""
        name = op.callee.root_reference.data
        if name not in self.regions:
            callee = SymbolTable.lookup_symbol(op, name)
            if not isinstance(callee, func.FuncOp) or p.given is not None:
                raise UnsupportedError(f"a call of @{name}", hint="run inline-regions first")
            region = self.regions[name] = PlannedRegion(name)
            self.plan(FunctionPlan(callee, region.planner(p, op, callee), region))
        self.regions[name].call(p, op)

    def _for_loop(self, p: LayoutPlanner, op: ForLoopOp) -> None:
        """Plan a loop over slices: one of the bundle if it can be, else one of the host."""
        (body,) = op.functions()
        if fits_bundle(op, self.spec):
            region = PlannedLoop.of(op)
            made, planned = FunctionPlan(body, region.planner(p, op, body), region), len(self.planned)
            try:
                self.plan(made)
            except (LoweringError, UnsupportedError):
                made.take_back()
                del self.planned[planned:]
            else:
                region.call(p, op)
                return
        self.plan(FunctionPlan(body, LayoutPlanner(keep_float32=self.keep_float32, relaid=p.relaid)))
        _on_host(p, op)


def _on_host(p: LayoutPlanner, op: host.LoopHostOp | ControlOp) -> None:
    """Plan a step of the host, which takes and gives tensors of the host."""
    check_host_step(p, op)
    p.items.append(PlannedHostOp(op, [returned_buffer(p, v) for v in op.operands]))
    p.hosts.update(dict.fromkeys(op.results, False))


def _stand_in(op: Operation, p: LayoutPlanner) -> None:
    """Takes the results of an op that cannot be lowered for host tensors."""
    for result in op.results:
        p.versions.pop(result, None)
        p.hosts[result] = False


__all__ = ["FunctionPlan", "PlansLayouts"]
