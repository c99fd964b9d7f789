"""Loops over slices that are loops of the bundle: the body is a function with `scf.for` around its kernels.

The function is planned as that of a region is. What the loop carries is a buffer that the caller fills, that every trip
reads and that its last kernels write; entries of what is sliced and of what trips give are tiles of whole tensors.
One launch runs all trips. A body that needs the host, or takes or gives integers, stays a function that the host calls.

Decision: docs/decisions/0197-loops-over-slices-are-loops-of-the-bundle.md
"""

from __future__ import annotations

from dataclasses import dataclass, field

from typing_extensions import override
from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Block, Region, SSAValue

from spyre_mlir.dialects.ir.control import ForLoopOp
from spyre_mlir.dialects.spyre import loop
from spyre_mlir.dialects.spyre.loop_blocks import NamedEntry
from spyre_mlir.dialects.tensors import element_of, integer_bits, shape_of
from spyre_mlir.errors import LoweringError
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.hw.sticks import UNIT
from spyre_mlir.ops.hardware_functions import COPY
from spyre_mlir.transforms.loop_to_kernel.buffers import BlockBuffer, Define, PlannedBuffer, elements_of
from spyre_mlir.transforms.loop_to_kernel.device_forms import Block as Entry
from spyre_mlir.transforms.loop_to_kernel.device_forms import DeviceForms
from spyre_mlir.transforms.loop_to_kernel.emission import returned_form
from spyre_mlir.transforms.loop_to_kernel.layout_planner import LayoutPlanner
from spyre_mlir.transforms.loop_to_kernel.region_plans import PlannedRegion
from spyre_mlir.transforms.utils.rebuild import Emitter

_STAY = (loop.NestOp, loop.EmptyOp, loop.LoopConstantOp, func.ReturnOp)


def fits_bundle(op: ForLoopOp, spec: SpyreSpec) -> bool:
    """Return whether a loop may be one of the bundle, as far as its body and its numbers say."""
    (body,) = op.functions()
    values = (*op.inputs, *op.outputs)
    if op.trips.value.data > spec.loop_trips or any(integer_bits(element_of(v)) > 1 for v in values):
        return False
    return all(isinstance(inner, _STAY) for inner in body.body.block.ops)


@dataclass
class PlannedLoop(PlannedRegion):
    """The function of a loop, with `scf.for` around the kernels of its body.

    Attributes:
        trip: the block of the loop, whose argument is the number of the trip.
        trips: how many there are.
        carried: how many arguments of the body are carried.
        sliced: how many behind these are entries.
        backwards: whether the first trip has the last entries.
    """

    trip: Block = field(default_factory=lambda: Block(arg_types=[IndexType()]))
    trips: int = 0
    carried: int = 0
    sliced: int = 0
    backwards: bool = False

    @staticmethod
    def of(op: ForLoopOp) -> PlannedLoop:
        """Return the function of a loop, not planned yet."""
        trips, carried, sliced = op.numbers
        name, backwards = op.body.root_reference.data, op.backwards is not None
        return PlannedLoop(name, trips=trips, carried=carried, sliced=sliced, backwards=backwards)

    @property
    def first(self) -> int:
        """The number of the entries of the first trip."""
        return self.trips - 1 if self.backwards else 0

    @override
    def planner(self, caller: LayoutPlanner, op: func.CallOp | ForLoopOp, callee: func.FuncOp) -> LayoutPlanner:
        made = super().planner(caller, op, callee)
        for number, argument in enumerate(callee.body.block.args):
            if self.carried <= number < self.carried + self.sliced:
                form = made.versions[argument].format
                whole = DeviceForms(shape_of(op.operands[number]), form, argument=argument)
                entry = Entry(argument, whole, 0, self.trip.args[0], NamedEntry(self.first, self.backwards))
                made.versions[argument] = DeviceForms(shape_of(argument), form, block=entry)
        return made

    @override
    def made_results(self, p: LayoutPlanner, returned: func.ReturnOp) -> list[PlannedBuffer]:
        """Write what is carried back to where it is read, and all other results into their entries."""
        rows = [self._row(p, value) for value in returned.operands[self.carried :]]
        block = returned.parent_block()
        assert block is not None
        homes = [p.some(p.of(argument)) for argument in block.args[: self.carried]]
        forms = [p.form(v, home.format) for v, home in zip(returned.operands, homes, strict=False)]
        found = [p.buffer(form, home.layout.stick) for form, home in zip(forms, homes, strict=True)]
        # What another one is carried from is read before anything is written.
        found = [p.copy(b) if b in homes and b is not home else b for b, home in zip(found, homes, strict=True)]
        for source, home in zip(found, homes, strict=True):
            if source is not home:
                _copy(p, source, home)
                home.filled.clear()
        return [*homes, *rows]

    def _row(self, p: LayoutPlanner, value: SSAValue) -> PlannedBuffer:
        """The tensor of what all trips give, of which a trip writes its entry."""
        form = returned_form(p, value)
        source = p.some(form)
        if source.layout.stick == 0:
            source = p.buffer(form, len(form.shape) - 1 or UNIT)
        whole = p.fresh((self.trips, *form.shape[1:]), form.format, source.layout.stick)
        entry = p.define(BlockBuffer(whole, 0, 1, self.trip.args[0], NamedEntry(self.first, self.backwards)))
        _copy(p, source, entry)
        return whole

    @override
    def settle(self, p: LayoutPlanner, returned: func.ReturnOp, spec: SpyreSpec) -> None:
        super().settle(p, returned, spec)
        whole = (b for b in self.parameters if b.constant is None and b.host is None)
        entries = [i.buffer for i in p.items if isinstance(i, Define) and isinstance(i.buffer, BlockBuffer)]
        if any(b.layout.unit_extent != 1 for b in whole) or any(b.layout.stick == b.dim for b in entries):
            raise LoweringError("tensors of a loop that lie in the lanes from entry to entry, or as copies")

    @override
    def write(self, p: LayoutPlanner, returned: func.ReturnOp, emitter: Emitter) -> None:
        super().write(p, returned, emitter)
        *inside, end = emitter.ops
        bounds = [arith.ConstantOp(IntegerAttr.from_index_int_value(n)) for n in (0, self.trips, 1)]
        self.trip.add_ops([*inside, scf.YieldOp()])
        lower, upper, step = (bound.result for bound in bounds)
        around = scf.ForOp(lower, upper, step, [], Region(self.trip))
        around.location = returned.location
        emitter.ops[:] = [*bounds, around, end]

    @override
    def provided_for(
        self, p: LayoutPlanner, parameter: PlannedBuffer, number: int | None, value: SSAValue | None
    ) -> PlannedBuffer:
        if number is None or value is None or number >= self.carried:
            return super().provided_for(p, parameter, number, value)
        form = p.form(value, parameter.format)
        if value in p.hosts and not form.placed:
            return p.define(parameter.alike(value))
        made = p.define(parameter.alike(None))
        _copy(p, p.buffer(form, parameter.layout.stick), made)
        return made


def _copy(p: LayoutPlanner, source: PlannedBuffer, made: PlannedBuffer) -> None:
    space, index = elements_of(source.shape)
    p.step(COPY, space, [(source, index)], (made, index))


__all__ = ["PlannedLoop", "fits_bundle"]
