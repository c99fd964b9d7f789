"""Functions of regions on the device, and their calls: what they take and give, each in one layout.

The function of a region is planned at its first call. Its parameters become device tensors: arguments in the layouts
that its steps ask for, an argument asked for in two by two parameters if the host provides it; the constants of its
steps, which the caller provides once for all calls; and its results, which it writes into buffers of the caller, or
into the argument whose new value they are. Last come the integers that say where a block of an argument starts.
A caller sends weights and inputs as they are asked for, and hands over what it has computed if it lies like that, else
a copy.

Decision: docs/decisions/0118-layers-once.md
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from spyre_mlir.dialects.argument_notes import kind_of
from spyre_mlir.dialects.ir.control import ForLoopOp
from spyre_mlir.dialects.spyre.host import LoopHostOp
from spyre_mlir.dialects.spyre.loop_blocks import PutOp
from spyre_mlir.dialects.tensors import element_of, shape_of
from spyre_mlir.errors import LoweringError
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.hw.sticks import StickLayout
from spyre_mlir.ops.hardware_functions import COPY
from spyre_mlir.transforms.loop_to_kernel.buffers import (
    BlockBuffer,
    Define,
    PlannedBuffer,
    PlannedCall,
    PlannedKernel,
    elements_of,
    stored_format,
)
from spyre_mlir.transforms.loop_to_kernel.device_forms import DeviceForms
from spyre_mlir.transforms.loop_to_kernel.emission import Emission, drop_unread, returned_form, settled
from spyre_mlir.transforms.loop_to_kernel.layout_planner import RESTICKIFY_STEP, LayoutPlanner
from spyre_mlir.transforms.loop_to_kernel.settling.kept_layouts import align
from spyre_mlir.transforms.utils.numerics.integer_origins import Known
from spyre_mlir.transforms.utils.overwritten import Pairs, written_arguments
from spyre_mlir.transforms.utils.rebuild import Emitter, describe_location

_FLAT = "inline-regions makes a program without calls"


@dataclass
class PlannedRegion:
    """The function of a region after its conversion.

    Attributes:
        name: of the function.
        parameters: the device tensors that it takes: arguments, constants, then results that are no arguments.
        operands: per parameter the number of the call's operand; None for constants and results.
        positions: numbers of the call's operands that say where blocks start.
        results: the parameters that hold its results.
        written: parameters that it writes to, if only behind their elements.
        provided: what calls share: weights and constants by parameter and host tensor.
        renewed: which results are the new values of which of the call's operands.
        following: which results are what a loop around the call carries on in the place of which of its operands.
    """

    name: str
    parameters: list[PlannedBuffer] = field(default_factory=list[PlannedBuffer])
    operands: list[int | None] = field(default_factory=list["int | None"])
    positions: list[int] = field(default_factory=list[int])
    results: list[PlannedBuffer] = field(default_factory=list[PlannedBuffer])
    written: set[PlannedBuffer] = field(default_factory=set[PlannedBuffer])
    provided: dict[tuple[PlannedBuffer, SSAValue | None], PlannedBuffer] = field(
        default_factory=dict[tuple[PlannedBuffer, "SSAValue | None"], PlannedBuffer]
    )
    renewed: Pairs = field(default_factory=set[tuple[int, int]])
    following: Pairs = field(default_factory=set[tuple[int, int]])

    def planner(self, caller: LayoutPlanner, op: func.CallOp | ForLoopOp, callee: func.FuncOp) -> LayoutPlanner:
        """Return a planner of the function that knows the arguments its first caller has on the device.

        An argument is the host's if its kind is noted: it is one of the caller's arguments at every call.
        """
        self.renewed = written_arguments(op) if isinstance(op, func.CallOp) else set()
        self.following = _following(caller, op)
        made = LayoutPlanner(keep_float32=caller.keep_float32, relaid=caller.relaid)
        made.written |= {callee.body.block.args[argument] for argument, _ in self.renewed}
        made.given = given = dict[SSAValue, Known]()
        for number, (argument, value) in enumerate(zip(callee.body.block.args, op.operands, strict=True)):
            if kind_of(callee, number) is not None:
                continue
            form = stored_format(element_of(value), keep_float32=caller.keep_float32)
            form = form if value in caller.hosts else caller.of(value).format
            made.versions[argument] = DeviceForms(shape_of(value), form, argument=argument)
            if caller.origins is not None:
                given[argument] = caller.origins.known(value)
        return made

    def made_results(self, p: LayoutPlanner, returned: func.ReturnOp) -> list[PlannedBuffer]:
        """Return a buffer for each result, which the function writes."""
        return _own_buffers(p, returned.operands)

    def settle(self, p: LayoutPlanner, returned: func.ReturnOp, spec: SpyreSpec) -> None:
        """Settle the plan of the function: what its calls have to know."""
        self.results = self.made_results(p, returned)
        settled(p, spec)
        align(p, self.renewed | self.following, self.results)
        drop_unread(p, self.results)
        made = [item.buffer for item in p.items if isinstance(item, Define)]
        given = [b for b in made if _comes(b) is not None]
        constants = [b for b in made if b.constant is not None]
        others = [b for b in self.results if b not in given]
        self.parameters = [*given, *constants, *others]
        self.operands = [_comes(b) for b in given] + [None] * (len(constants) + len(others))
        written = [item.output[0] for item in p.items if isinstance(item, PlannedKernel)]
        self.written = {b.whole if isinstance(b, BlockBuffer) else b for b in written}
        self.positions = [value.index for value in _positions(made)]

    def write(self, p: LayoutPlanner, returned: func.ReturnOp, emitter: Emitter) -> None:
        """Write the settled plan of the function, which gets its new parameters behind the old ones."""
        block, emission = returned.parent_block(), Emission(emitter)
        positions = _positions([item.buffer for item in p.items if isinstance(item, Define)])
        if block is not None:
            for buffer in self.parameters:
                emission.values[buffer] = _added(block, buffer.type, buffer.host or buffer.argument)
            emission.hosts.update({value: _added(block, value.type, value) for value in positions})
        emission.write(p)
        emitter.current = returned
        emitter.add(func.ReturnOp())

    def drop_old(self, function: func.FuncOp) -> None:
        """Take from the converted function its host tensors, which nothing uses any more."""
        block = function.body.block
        for argument in list(block.args[: len(block.args) - len(self.parameters) - len(self.positions)]):
            block.erase_arg(argument)
        function.function_type = FunctionType.from_lists([a.type for a in block.args], [])
        function.arg_attrs = None

    def call(self, p: LayoutPlanner, op: func.CallOp | ForLoopOp) -> None:
        """Plan a call: its operands as the function takes them, and buffers for its results."""
        buffers: list[PlannedBuffer] = []
        for parameter, number in zip(self.parameters, self.operands, strict=True):
            value = None if number is None else op.operands[number]
            buffers.append(self.provided_for(p, parameter, number, value))
        p.items.append(PlannedCall(op, self.name, buffers, [op.operands[n] for n in self.positions]))
        held = dict(zip(self.parameters, buffers, strict=True))
        for parameter, buffer in held.items():
            buffer.filled.update(parameter.filled)
        for value, result in zip(op.results, self.results, strict=True):
            versions, buffer = p.of(value), held[result]
            versions.format = buffer.format
            versions.buffers.append(buffer)

    def provided_for(
        self, p: LayoutPlanner, parameter: PlannedBuffer, number: int | None, value: SSAValue | None
    ) -> PlannedBuffer:
        """Return the caller's buffer for a parameter.

        Args:
            p: plans the caller.
            parameter: of the function.
            number: of the call's operand that it is, if it is one.
            value: this operand.
        """
        del number
        if value is not None and value not in p.hosts:
            if parameter.host is not None:
                raise LoweringError("an argument that the host would have to send", where=_place(p), hint=_FLAT)
            return _handed_over(p, p.form(value, parameter.format), parameter)
        if value is None and parameter in self.results:
            return _like(p, parameter)
        if value is not None and value in p.placed and (form := p.form(value, parameter.format)).placed:
            return _handed_over(p, form, parameter)
        key = parameter, value
        shared = self.provided.get(key) if parameter not in self.written else None
        if shared is None:
            shared = self.provided[key] = _like(p, parameter, value)
        return shared


def check_host_step(p: LayoutPlanner, op: Operation) -> None:
    """Refuse a step of the host in the function of a region, which runs in one launch and has no tensors of the host.

    Raises:
        LoweringError: `p` plans the function of a region.
    """
    if p.given is not None:
        name = op.callee.data if isinstance(op, LoopHostOp) else op.name
        raise LoweringError(f"the host would have to run {name} in the middle of a launch", where=_place(p), hint=_FLAT)


def _following(caller: LayoutPlanner, op: Operation) -> Pairs:
    """The operands of a call that a loop carries, each with the result of the call that it carries on in its place."""
    function = op.parent_op()
    returned = function.get_return_op() if isinstance(function, func.FuncOp) else None
    if returned is None:
        return set()
    next_values = {number: caller.carried.get(value) for number, value in enumerate(op.operands)}
    made = {returned.operands[at]: number for number, at in next_values.items() if at is not None}
    return {(made[result], n) for n, result in enumerate(op.results) if result in made}


def _comes(buffer: PlannedBuffer) -> int | None:
    """The number of the argument that a buffer holds; None if it holds none."""
    source = buffer.host or buffer.argument
    return source.index if isinstance(source, BlockArgument) else None


def _positions(buffers: Sequence[PlannedBuffer]) -> list[BlockArgument]:
    """The arguments that say where blocks start; the number of a trip is none."""
    values = (b.position for b in buffers if isinstance(b, BlockBuffer) and not b.is_entry)
    return list(dict.fromkeys(v for v in values if isinstance(v, BlockArgument)))


def _added(block: Block, type_: Attribute, source: SSAValue | None) -> BlockArgument:
    """A new argument behind the others, with the name of the one that it comes from."""
    argument = block.insert_arg(type_, len(block.args))
    argument.name_hint = source.name_hint if source is not None else None
    return argument


def _own_buffers(p: LayoutPlanner, values: Sequence[SSAValue]) -> list[PlannedBuffer]:
    """A buffer for every result that is no constant, no other result, and no parameter but the one it is written in."""
    found: list[PlannedBuffer] = []
    for value in values:
        buffer = p.some(returned_form(p, value))
        moved = _comes(buffer) is not None and not isinstance(value.owner, PutOp)
        if moved or buffer.constant is not None or buffer in found:
            buffer = p.copy(buffer)
        found.append(buffer)
    return found


def _like(p: LayoutPlanner, parameter: PlannedBuffer, host: SSAValue | None = None) -> PlannedBuffer:
    """A buffer that lies as a parameter does."""
    return p.define(parameter.alike(host))


def _handed_over(p: LayoutPlanner, versions: DeviceForms, parameter: PlannedBuffer) -> PlannedBuffer:
    """A tensor of the caller as a parameter takes it: itself if it can lie like that, else a copy."""
    layout = parameter.layout
    for buffer in versions.buffers:
        if buffer.constant is None and not _is_relaid(p, buffer) and buffer.fix(layout):
            return buffer
    source = p.buffer(versions, layout.stick)
    if source.constant is None and not _is_relaid(p, source) and source.fix(layout):
        return source
    made = _like(p, PlannedBuffer(parameter.shape, parameter.format, _dense(p, layout)))
    space, index = elements_of(source.shape)
    p.step(COPY, space, [(source, index)], (made, index))
    versions.buffers.append(made)
    return made


def _dense(p: LayoutPlanner, layout: StickLayout) -> StickLayout:
    if layout.unit_extent != 1:
        raise LoweringError("an argument that is read as copies of a sparse tensor", where=_place(p), hint=_FLAT)
    return layout


def _is_relaid(p: LayoutPlanner, buffer: PlannedBuffer) -> bool:
    """Return whether a restickify reads or makes a buffer: its extents are settled at the end only."""
    steps = (s for s in p.items if isinstance(s, PlannedKernel) and s.function == RESTICKIFY_STEP)
    return any(buffer in (s.inputs[0][0], s.output[0]) for s in steps)


def _place(p: LayoutPlanner) -> str | None:
    return None if p.origin is None else f"{p.origin.name} at {describe_location(p.origin)}"


__all__ = ["PlannedRegion", "check_host_step"]
