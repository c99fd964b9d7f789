"""The graphs of a program: lowered with its operations numbered, so that every op below leads back to one of them.

Decision: docs/decisions/0132-numbered-operations.md
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Attribute, Block, Operation

from spyre_mlir.choices import HostFallback
from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.ir.functions import functions_by_name
from spyre_mlir.dialects.ir.module_control import refuse_control_flow
from spyre_mlir.dialects.ir.modules import copy_of
from spyre_mlir.dialects.places import Source, numbered, source_of
from spyre_mlir.dialects.spyre.host import HostOp
from spyre_mlir.dialects.spyre.kernel import FromDeviceOp, KernelConstantOp, KernelOp, ToDeviceOp
from spyre_mlir.dialects.spyre.loop import LoopConstantOp, LoopGatherOp, NestOp
from spyre_mlir.machine.bundle.timeline import TimedKernel
from spyre_mlir.options import CompileOptions
from spyre_mlir.pipeline import LEVELS, PassWatcher, lower
from spyre_mlir.report.graphs.figures import kernel_figures, launch_figures, loop_figures, module_figures, op_figures
from spyre_mlir.report.graphs.flow import Flow
from spyre_mlir.report.graphs.level_graph import SEPARATOR, LevelGraph, LevelNode
from spyre_mlir.report.graphs.level_graphs import LevelGraphs
from spyre_mlir.report.models.op_support import support_of
from spyre_mlir.report.timing import module_timeline
from spyre_mlir.transforms.regions.inlining import inline_all
from spyre_mlir.universe import make_context


@dataclass(frozen=True)
class NumberedOperation:
    """An operation at the aten level, as lower levels refer to it.

    Attributes:
        id: of its node.
        name: in its module, e.g. ``aten.add_1`` for the second sum there.
        group: parts of the path of its module.
        source: where it is in the model.
    """

    id: str
    name: str
    group: tuple[str, ...]
    source: Source


Kernels = Sequence[tuple[KernelOp, TimedKernel]]


def graphs_of(name: str, module: ModuleOp, options: CompileOptions, watch: PassWatcher | None = None) -> LevelGraphs:
    """Lower a program, and return its graph at every level.

    Args:
        name: of the program.
        module: at the aten level, without calls; it is not modified.
        options: of the compilation.
        watch: is told of every pass.

    Raises:
        UnsupportedError: host steps are refused, all of them are listed; or the host decides what runs.
        LoweringError: the program does not fit the machine.
    """
    refuse_control_flow(module, "a graph")
    aten = copy_of(module)
    ops = list(_main(aten).body.block.ops)
    numbered(ops)
    origins = origins_of(ops)
    refuse: HostFallback = "error" if options.host_fallback == "error" else "allow"
    context, fields = make_context(options.spec), options.passes()
    lowered = lower(aten, context, options=fields, watch=watch, host_fallback=refuse)
    loop, kernel = (flat_copy(lowered.modules[level]) for level in LEVELS[1:3])
    timeline = module_timeline(lowered.modules[LEVELS[-1]], "calibrated")
    kernels = list(zip(kernels_in(kernel), timeline.kernels, strict=True))
    groups = module_figures((group_of(source_of(op.location)), timed) for op, timed in kernels)
    graphs = (
        _aten_graph(aten, loop, kernels, origins),
        _Lower("nest", origins, (), lambda op, _, __: loop_figures(op)).nodes(loop),
        _Lower("kernel", origins, kernels, kernel_figures).nodes(kernel),
        _Lower("kernel", origins, kernels, launch_figures).nodes(kernel),
    )
    return LevelGraphs(name, tuple(LevelGraph(level, n, groups) for level, n in zip(LEVELS, graphs, strict=True)))


def origins_of(ops: Sequence[Operation]) -> dict[int, NumberedOperation]:
    """Return by its number every operation at the aten level; its name is unique in its module."""
    counts: dict[tuple[str, str], int] = {}
    found: dict[int, NumberedOperation] = {}
    for op in ops:
        if not isinstance(op, AtenOp):
            continue
        source = source_of(op.location)
        name = f"aten.{op.operation.removeprefix('aten.')}"
        count = counts[source.module, name] = counts.get((source.module, name), -1) + 1
        name, group = f"{name}_{count}" if count else name, group_of(source)
        found[source.number] = NumberedOperation(SEPARATOR.join((*group, name)), name, group, source)
    return found


def group_of(source: Source) -> tuple[str, ...]:
    """Return the group of a module."""
    return tuple(source.module.split(".")) if source.module else ()


def _main(module: ModuleOp) -> func.FuncOp:
    return functions_by_name(module)["main"]


def flat_copy(module: ModuleOp) -> ModuleOp:
    """Return a copy of a module without calls."""
    flat = copy_of(module)
    inline_all(flat)
    return flat


def kernels_in(module: ModuleOp) -> list[KernelOp]:
    """Return the kernels of a module without calls, in the order in which its timeline has them."""
    return [op for op in _ops(_main(module).body.block) if isinstance(op, KernelOp)]


def _ops(block: Block) -> Iterator[Operation]:
    """The ops of a block and of the loops in it."""
    for op in block.ops:
        if isinstance(op, scf.ForOp):
            yield from _ops(op.body.block)
        else:
            yield op


def _flow(module: ModuleOp) -> Flow:
    """The inputs of a program; weights belong to what reads them."""
    main, flow = _main(module), Flow()
    for number, argument in enumerate(main.body.block.args):
        notes: Mapping[str, Attribute] = main.arg_attrs.data[number].data if main.arg_attrs is not None else {}
        kind, name = notes.get("aten.kind"), notes.get("aten.name")
        text = name.data if isinstance(name, StringAttr) else argument.name_hint or f"argument {number}"
        flow.argument(argument, text, is_input=not isinstance(kind, StringAttr) or kind.data == "input")
    return flow


def _aten_graph(
    aten: ModuleOp, loop: ModuleOp, kernels: Kernels, origins: Mapping[int, NumberedOperation]
) -> tuple[LevelNode, ...]:
    support, flow = support_of(aten, loop), _flow(aten)
    made: dict[int, list[TimedKernel]] = {}
    for op, timed in kernels:
        made.setdefault(source_of(op.location).number, []).append(timed)
    total = sum(timed.cost.total for _, timed in kernels)
    for op in _main(aten).body.block.ops:
        origin = origins.get(source_of(op.location).number)
        if isinstance(op, AtenOp) and origin is not None:
            mine = made.get(origin.source.number, [])
            figures = op_figures(mine, total) | _place(origin.source)
            label, us = op.operation.removeprefix("aten."), sum(k.cost.total for k in mine)
            flow.op(op, LevelNode(origin.id, label, origin.group, support[op], figures=figures, us=us))
        elif isinstance(op, func.ReturnOp):
            flow.outputs(op)
    return flow.nodes()


def _place(source: Source) -> dict[str, str]:
    found = {"line": f"{source.file}:{source.line}"} if source.file is not None else {}
    return found | ({"module": source.module} if source.module else {})


@dataclass(frozen=True)
class _Lower:
    """Builder of a graph below the aten level.

    Attributes:
        word: what a node is called after the operation it comes from, if several do.
        origins: the operations at the aten level.
        kernels: of the level, with their times; none at the loop level.
        figures: gives the figures of an op.
    """

    word: str
    origins: Mapping[int, NumberedOperation]
    kernels: Kernels
    figures: Callable[[Operation, TimedKernel | None, float], Mapping[str, str]]

    def nodes(self, module: ModuleOp) -> tuple[LevelNode, ...]:
        """The nodes of a module without calls."""
        flow = _flow(module)
        ops = list(_ops(_main(module).body.block))
        drawn: dict[int, list[Operation]] = {}
        for op in ops:
            if isinstance(op, _DRAWN) and (number := source_of(op.location).number) in self.origins:
                drawn.setdefault(number, []).append(op)
        times: dict[Operation, TimedKernel] = dict(self.kernels)
        total = sum(timed.cost.total for timed in times.values())
        for op in ops:
            if isinstance(op, _DRAWN):
                figures, timed = self.figures(op, times.get(op), total), times.get(op)
                node = self._node(op, drawn, figures, 0.0 if timed is None else timed.cost.total)
                if isinstance(op, KernelOp):
                    flow.update(node, op.inputs, op.output)
                else:
                    flow.op(op, node)
            else:
                _undrawn(flow, op)
        return flow.nodes()

    def _node(
        self, op: Operation, drawn: Mapping[int, list[Operation]], figures: Mapping[str, str], us: float
    ) -> LevelNode:
        """A node without what it reads; the last of an operation has that operation's id."""
        source, kind = source_of(op.location), "host" if isinstance(op, HostOp) else "op"
        origin, label = self.origins.get(source.number), _label(op)
        if origin is None:
            group = group_of(source)
            return LevelNode(SEPARATOR.join((*group, label)), label, group, kind, figures=figures, us=us)
        family = drawn[source.number]
        place = family.index(op)
        own = origin.id if place == len(family) - 1 else f"{origin.id}.{self.word}{place}"
        group = (*origin.group, origin.name) if len(family) > 1 else origin.group
        said = {"aten operation": origin.id} | _place(origin.source) | dict(figures)
        return LevelNode(own, label, group, kind, figures=said, us=us)


_DRAWN = (NestOp, LoopGatherOp, HostOp, KernelOp)


def _undrawn(flow: Flow, op: Operation) -> None:
    """What is neither computed nor moved by the device: transfers, constants, views, and the end."""
    if isinstance(op, func.ReturnOp):
        flow.outputs(op)
    elif isinstance(op, ToDeviceOp) and not flow.is_folded(op.source):
        flow.op(op, LevelNode("to_device", "to_device", (), "transfer"))
    elif isinstance(op, FromDeviceOp):
        flow.op(op, LevelNode("from_device", "from_device", (), "transfer"))
    elif isinstance(op, KernelConstantOp | LoopConstantOp):
        flow.fold(op.result, f"constant {op.value}")
    elif len(op.results) == 1 and op.operands:  # a tile, or another view
        flow.follow(op.results[0], op.operands[0])


def _label(op: Operation) -> str:
    if isinstance(op, HostOp):
        return op.callee.data
    if isinstance(op, KernelOp):
        return op.function_name
    said = loop_figures(op)
    reduced = f" reduce {said['reduction']}" if "reduction" in said else ""
    return f"nest {said['per point']}{reduced}" if said else op.name.rpartition(".")[2]
