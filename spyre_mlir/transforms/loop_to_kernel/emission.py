"""The plan of a function as ops, once every layout is known."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, UnitAttr, i64
from xdsl.ir import BlockArgument, Operation, SSAValue

from spyre_mlir.dialects.argument_notes import overwritten, placed_results
from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.layout_choices import WHY, LayoutChoice
from spyre_mlir.dialects.spyre.moves import step_attribute
from spyre_mlir.hw.formats import DL16, FP8, FP32, INDEX
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.hw.sticks import StickLayout
from spyre_mlir.transforms.loop_to_kernel.buffers import (
    BlockBuffer,
    Define,
    Item,
    PartsBuffer,
    PlannedBuffer,
    PlannedCall,
    PlannedHostOp,
    PlannedKernel,
)
from spyre_mlir.transforms.loop_to_kernel.device_forms import DeviceForms
from spyre_mlir.transforms.loop_to_kernel.kernel_ops import brought, host_op, kernel_op
from spyre_mlir.transforms.loop_to_kernel.layout_planner import LayoutPlanner, lanes_of
from spyre_mlir.transforms.loop_to_kernel.precision_loss import is_narrowed, is_rounded
from spyre_mlir.transforms.loop_to_kernel.settling.equal_extents import lengthen, settle
from spyre_mlir.transforms.loop_to_kernel.settling.kept_layouts import align
from spyre_mlir.transforms.loop_to_kernel.settling.reachable_layouts import bring_within_reach
from spyre_mlir.transforms.loop_to_kernel.settling.wider_products import widen
from spyre_mlir.transforms.utils.rebuild import Emitter


@dataclass
class Emission:
    """Ops made of a plan.

    Attributes:
        values: device tensors by the buffers that they became.
        hosts: host tensors of the kernel level by those of the loop level.
    """

    emitter: Emitter
    values: dict[PlannedBuffer, SSAValue] = field(default_factory=dict[PlannedBuffer, SSAValue])
    hosts: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])

    def write(self, p: LayoutPlanner) -> None:
        """Write the ops of a settled plan; buffers that have a value already are not made."""
        for item in p.items:
            self.emitter.current = item.origin
            if isinstance(item, Define):
                if isinstance(item.buffer, BlockBuffer):
                    self._block(item.buffer)
                elif isinstance(item.buffer, PartsBuffer):
                    made = item.buffer.definition(self.values[item.buffer.whole])
                    self.values[item.buffer] = self.emitter.add(made).results[0]
                elif item.buffer not in self.values:
                    self.values[item.buffer] = self.emitter.add(_definition(item.buffer, self.hosts)).results[0]
            else:
                self._step(p, item)

    def _block(self, block: BlockBuffer) -> None:
        position = self.hosts.get(block.position, block.position)
        for op in block.definition(self.values[block.whole], position):
            self.values[block] = self.emitter.add(op).results[0]

    def _step(self, p: LayoutPlanner, item: Item) -> None:
        match item:
            case PlannedHostOp():
                operands = brought(item.origin, item.buffers, self.values, self.hosts, self.emitter)
                step = self.emitter.add(host_op(item, operands))
                self.hosts.update(zip(item.origin.results, step.results, strict=True))
            case PlannedCall():
                positions = [self.hosts.get(v, v) for v in item.positions]
                self.emitter.add(func.CallOp(item.callee, [*(self.values[b] for b in item.buffers), *positions], []))
            case Define():
                pass
            case _:
                made = self.emitter.add(kernel_op(item, self.values))
                if (note := p.chosen.note(item)) is not None:
                    made.attributes[WHY] = note
                if not isinstance(made, kernel.ComputeOp):
                    return
                if (p.keep_float32 or item.origin in p.kept) and is_narrowed(item):
                    made.narrowed = UnitAttr()
                elif p.origins is not None and is_rounded(item, p.origins):
                    made.rounded = UnitAttr()


def settled(p: LayoutPlanner, spec: SpyreSpec, kept: Collection[PlannedBuffer | None] = ()) -> None:
    """Bring every layout of a plan to its final form; buffers to be kept reserve no more than they have to."""
    settle(p)
    longer, wider = lengthen(p, spec), widen(p, kept)
    if longer or wider:
        settle(p)
    bring_within_reach(p, spec)


def drop_unread(p: LayoutPlanner, results: Iterable[PlannedBuffer | None]) -> None:
    """Drop the buffers of inputs that nothing reads in the form in which they lie."""
    read = set(results)
    for item in p.items:
        if isinstance(item, PlannedKernel):
            read |= {item.output[0], *(buffer for buffer, _ in item.inputs)}
        elif isinstance(item, Define):
            read |= {item.buffer.whole} if isinstance(item.buffer, BlockBuffer | PartsBuffer) else set()
        else:
            read.update(item.buffers)
    unread = [i for i in p.items if isinstance(i, Define) and i.buffer.host in p.placed and i.buffer not in read]
    p.items = [item for item in p.items if item not in unread]


def planned_results(p: LayoutPlanner, returned: func.ReturnOp, spec: SpyreSpec) -> list[PlannedBuffer | None]:
    """Settle the plan of a function that gives host tensors; return the buffers of its results."""
    function = returned.parent_op()
    placed = placed_results(function) if isinstance(function, func.FuncOp) else set[int]()
    said = {number: choice for number, choice in p.arguments.results.items() if number not in placed}
    results = [returned_buffer(p, v, placed=n in placed, said=said.get(n)) for n, v in enumerate(returned.operands)]
    settled(p, spec, [results[number] for number in placed])
    if isinstance(function, func.FuncOp):
        align(p, overwritten(function).items(), results)
    align(p, ((a.index, n) for a, n in p.carried.items() if n is not None and isinstance(a, BlockArgument)), results)
    for number in placed:
        p.origin = _maker(returned.operands[number])
        results[number] = _as_placed(p, results[number])
    for number, choice in said.items():
        p.origin, buffer = _maker(returned.operands[number]), results[number]
        if buffer is not None and choice.order not in ((), LayoutChoice.of(buffer.layout).order):
            results[number] = p.copy(buffer, choice.in_order(buffer.layout))
    drop_unread(p, results)
    return results


def write_program(
    p: LayoutPlanner, returned: func.ReturnOp, results: Sequence[PlannedBuffer | None], emitter: Emitter
) -> None:
    """Write the plan of a function that gives host tensors."""
    emission = Emission(emitter)
    emission.write(p)
    emitter.current = returned
    emitter.add(func.ReturnOp(*brought(returned, results, emission.values, emission.hosts, emitter)))


def returned_buffer(
    p: LayoutPlanner, value: SSAValue, *, placed: bool = False, said: LayoutChoice | None = None
) -> PlannedBuffer | None:
    """Return the buffer to bring back for a result; None for a host tensor returned as it is.

    Args:
        p: the plan.
        value: the result.
        placed: whether it leaves in the default layout, of which the buffer has the stick dimension.
        said: the layout that the text says, of which it has the stick dimension.
    """
    if value in p.hosts:
        return None
    form = returned_form(p, value)
    if placed and form.format == DL16.name:
        p.origin = _maker(value)
        return p.buffer(form, StickLayout.default(form.shape, lanes_of(form.format)).stick)
    return p.some(form) if said is None or said.stick is None else p.buffer(form, said.stick)


def _maker(value: SSAValue) -> Operation | None:
    """The op whose kernels lay a result out."""
    return value.owner if isinstance(value.owner, Operation) else None


def _as_placed(p: LayoutPlanner, buffer: PlannedBuffer | None) -> PlannedBuffer | None:
    """A result in the default layout: its buffer, or a copy without what others have reserved in that."""
    if buffer is None or buffer.format != DL16.name:
        return buffer
    layout = StickLayout.default(buffer.shape, buffer.lanes)
    return buffer if buffer.layout.lies_as(layout, buffer.lanes) else p.copy(buffer, layout)


def returned_form(p: LayoutPlanner, value: SSAValue) -> DeviceForms:
    """Return a result in the format in which it leaves a function."""
    versions = p.of(value)
    return p.form(value, {INDEX.name: FP32.name, FP8.name: DL16.name}.get(versions.format, versions.format))


def _definition(buffer: PlannedBuffer, hosts: Mapping[SSAValue, SSAValue]) -> Operation:
    if buffer.host is not None:
        op = kernel.ToDeviceOp(hosts.get(buffer.host, buffer.host), buffer.type)
        if buffer.saturate:
            op.saturate = UnitAttr()
        if buffer.zero_padding:
            op.zero_padding = UnitAttr()
        if buffer.elements:
            op.elements = ArrayAttr(buffer.elements)
        if buffer.moves:
            op.moved = ArrayAttr([step_attribute(step) for step in buffer.moves])
        if buffer.rows is not None:
            op.from_end = IntegerAttr(buffer.rows, i64)
        return op
    return (
        kernel.AllocOp(buffer.type)
        if buffer.constant is None
        else kernel.KernelConstantOp(buffer.constant, buffer.type)
    )


__all__ = ["Emission", "drop_unread", "planned_results", "returned_buffer", "returned_form", "settled", "write_program"]
