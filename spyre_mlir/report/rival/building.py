"""The plan of a program beside the one that torch-spyre's published rules give it, operation by operation.

Both are lowered alike up to the planner, so they have the same layouts, and the same cost model prices them. Of the
other planner there are the divisions of products and of single ops, and its loops around attention; its joint solver of
divisions and scratchpads is not in it.

Decision: docs/decisions/0128-the-rivals-rules.md
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.choices import HostFallback
from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.ir.module_control import refuse_control_flow
from spyre_mlir.dialects.ir.modules import copy_of, ops_in
from spyre_mlir.dialects.places import numbered, source_of
from spyre_mlir.dialects.spyre.kernel import ComputeOp
from spyre_mlir.dialects.target import spec_at
from spyre_mlir.errors import LoweringError, UnsupportedError
from spyre_mlir.hw.cost_parameters import Profile
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.machine.bundle.timeline import Timeline
from spyre_mlir.options import CompileOptions, PassOptions
from spyre_mlir.pipeline import LEVELS, OFF, ModulesBefore, lower, lower_last, made_passes, passes_to
from spyre_mlir.planning.rival import RivalError, rival_division
from spyre_mlir.report.graphs.building import NumberedOperation, origins_of
from spyre_mlir.report.rival.attention import TiledAttention, attentions, tiled
from spyre_mlir.report.rival.beside import BesideRival, OperationPlans
from spyre_mlir.report.rival.priced_program import PricedProgram
from spyre_mlir.report.shares import folded_modules
from spyre_mlir.transforms.buffer_layouts.stage_transfers import StageTransfersPass
from spyre_mlir.transforms.kernel_to_superdsc.published_division import rival_op
from spyre_mlir.transforms.plan import PlanPass
from spyre_mlir.transforms.utils.kernels.loops import loops_of
from spyre_mlir.universe import make_context

RIVAL: PassOptions = {
    "plan": {"together": False},
    "divide-work": {"products": "published"},
    StageTransfersPass.name: OFF,
}
TOGETHER: PassOptions = {"plan": {"loops": False}}
ELSEWHERE = "no operation of the model"


def beside_rival(name: str, module: ModuleOp, options: CompileOptions, profile: Profile = "calibrated") -> BesideRival:
    """Lower a program, plan it by both planners, and return their plans side by side.

    Args:
        name: of the program.
        module: at the aten level, without calls; it is not modified.
        options: of the compilation.
        profile: of the cost model.

    Raises:
        UnsupportedError: host steps are refused, all of them are listed; or the host decides what runs.
        LoweringError: the program does not fit the machine, whoever plans it.
    """
    refuse_control_flow(module, "a plan beside another one")
    aten = copy_of(module)
    numbered(op for op in ops_in(aten) if isinstance(op, AtenOp))
    origins = origins_of([op for op in ops_in(aten) if isinstance(op, AtenOp)])
    refuse: HostFallback = "error" if options.host_fallback == "error" else "allow"
    context, fields, taken = make_context(options.spec), options.passes(), ModulesBefore((PlanPass.name,))
    modules = lower(aten, context, options=fields, watch=taken, host_fallback=refuse).modules
    planned = PricedProgram.of(modules[LEVELS[2]], modules[LEVELS[-1]], profile)
    try:
        rival = _by_rules(aten, taken.modules[PlanPass.name], context, fields, options.spec).priced(profile)
    except (LoweringError, UnsupportedError) as error:
        note = f"by torch-spyre's rules the program does not compile: {error.message}"
        return BesideRival(name, profile, planned.timeline, None, notes=(note,))
    operations = tuple(_folded(_pairs(origins, rival, planned)))
    cut = (f"{rival.tiles[n].text} for {origin.name}" for n, origin in origins.items() if n in rival.tiles)
    notes = tuple(dict.fromkeys([*_notes(rival, origins, options.spec), *cut]))
    return BesideRival(name, profile, planned.timeline, rival.timeline, operations, notes)


def rival_timelines(module: ModuleOp, options: PassOptions, profiles: Iterable[Profile]) -> list[Timeline]:
    """Return the timelines of a program by torch-spyre's rules, one for each profile of the cost model.

    Args:
        module: at the aten level, without calls; it is not modified.
        options: fields of passes.
        profiles: the profiles wanted.

    Raises:
        UnsupportedError: the program does not compile.
        LoweringError: it does not fit the machine.
    """
    aten, spec, taken = copy_of(module), spec_at(module), ModulesBefore((PlanPass.name,))
    context = make_context(spec)
    numbered(op for op in ops_in(aten) if isinstance(op, AtenOp))
    lower(aten, context, options=options, watch=taken)
    ruled = _by_rules(aten, taken.modules[PlanPass.name], context, options, spec)
    return [ruled.priced(profile).timeline for profile in profiles]


@dataclass(frozen=True)
class _Ruled:
    """A program by the rules of the other planner at the last two levels, and its attentions in tiles, by number."""

    kernels: ModuleOp
    files: ModuleOp
    tiles: Mapping[int, TiledAttention]

    def priced(self, profile: Profile) -> PricedProgram:
        """All kernels with their times."""
        return PricedProgram.of(self.kernels, self.files, profile, self.tiles)


def _by_rules(aten: ModuleOp, module: ModuleOp, context: Context, options: PassOptions, spec: SpyreSpec) -> _Ruled:
    """A program by the rules of the other planner; the second module is the one that the planner was given."""
    fields = _with(options, RIVAL)
    names = passes_to(LEVELS[2]).split(",")
    for one in made_passes(names[names.index(PlanPass.name) :], fields):
        one.apply(context, module)
    files = lower_last(module, context, fields)
    tiles = tiled(attentions(ops_in(aten)), spec, context, (fields, _with(options, TOGETHER)))
    return _Ruled(module, files, tiles)


def _with(options: PassOptions, more: PassOptions) -> PassOptions:
    """Options of passes with other fields."""
    return {**options, **{name: {**options.get(name, {}), **values} for name, values in more.items()}}


def _pairs(
    origins: Mapping[int, NumberedOperation], rival: PricedProgram, planned: PricedProgram
) -> Iterator[tuple[str, OperationPlans]]:
    """Both sides of every operation that has a kernel, with the module it is in."""
    for number in (*origins, 0):
        sides = rival.side(number), planned.side(number)
        if not any(sides):
            continue
        origin = origins.get(number)
        if origin is None:
            yield "", OperationPlans(ELSEWHERE, "", "", *sides)
            continue
        source = origin.source
        line = f"{Path(source.file).name}:{source.line}" if source.file is not None else ""
        yield source.module, OperationPlans(origin.name, source.module, line, *sides)


def _folded(pairs: Iterator[tuple[str, OperationPlans]]) -> list[OperationPlans]:
    """Equal operations of equal layers as one."""
    every = list(pairs)
    names = folded_modules(module for module, _ in every)
    found: dict[object, list[OperationPlans]] = {}
    for module, pair in every:
        where = "" if module == "" else names[module]
        sides = (tuple((k.row.what, k.row.loops, k.us, k.trips) for k in side) for side in (pair.rival, pair.planned))
        found.setdefault((pair.name, where, pair.line, *sides), []).append(pair)
    folded = list[OperationPlans]()
    for equal in found.values():
        one = equal[0]
        where = names[one.module] if len(equal) > 1 and one.module else one.module
        folded.append(OperationPlans(one.name, where, one.line, one.rival, one.planned, len(equal)))
    return folded


def _notes(rival: PricedProgram, origins: Mapping[int, NumberedOperation], spec: SpyreSpec) -> Iterator[str]:
    """What the rules refuse, and divisions of theirs that have no form here."""
    for op in rival.divided:
        if not isinstance(op, ComputeOp):
            continue
        origin = origins.get(source_of(op.location).number)
        where = f"{op.function_name} of {origin.name}" if origin is not None else op.function_name
        try:
            wanted = rival_division(rival_op(op, loops_of(op)), spec)
        except RivalError as error:
            yield f"torch-spyre does not compile {where}: {error}; its time here is that of the usual division"
            continue
        if op.is_product and wanted != op.space_splits():
            yield f"torch-spyre's division of {where} has no form here; its time is that of the usual one"


__all__ = ["RIVAL", "beside_rival", "rival_timelines"]
