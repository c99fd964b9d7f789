"""Conversion of tensors to the layout and format of a consumer: host layouts, restickify, copies, cleared padding.

FP32 tensors with a dimension in the lanes have their elements in the order that a widening of DL16 sticks leaves: a
conversion is one kernel then, the host sends and fetches that order, and reductions fold whole sticks.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from typing import Any

from xdsl.dialects.builtin import FloatAttr, IntegerAttr, f64
from xdsl.ir import Attribute, Operation, SSAValue

from spyre_mlir.dialects.spyre.attributes import IterDim
from spyre_mlir.dialects.spyre.named_values import FirstOnesAttr
from spyre_mlir.dialects.tensors import element_of, shape_of
from spyre_mlir.hw.arrangement import STANDARD, WIDENED, block
from spyre_mlir.hw.formats import DL16, FP8, FP32, INT32, device_format
from spyre_mlir.hw.legality import multiples, stick_for
from spyre_mlir.hw.moves import Move
from spyre_mlir.hw.sticks import UNIT, IndexMap, LinearExpr, StickLayout, round_up
from spyre_mlir.ops.hardware_functions import COPY, SELECT
from spyre_mlir.transforms.loop_to_kernel.buffers import (
    BlockBuffer,
    Define,
    Item,
    PlannedBuffer,
    PlannedKernel,
    Use,
    elements_of,
    stored_format,
)
from spyre_mlir.transforms.loop_to_kernel.device_forms import Block, DeviceForms, WeightRoom
from spyre_mlir.transforms.loop_to_kernel.layout_text.argument_layouts import ArgumentLayouts
from spyre_mlir.transforms.loop_to_kernel.layout_text.said_layouts import ChosenLayouts
from spyre_mlir.transforms.loop_to_kernel.widened_order import HALF_SLICE, reorderings
from spyre_mlir.transforms.utils.numerics.integer_origins import Known, Origins
from spyre_mlir.transforms.utils.numerics.integer_ranges import NARROW, Ranges, inside, is_integer

RESTICKIFY_STEP = "restickify"
CONVERT_STEP = "convert"
# Sticks that one of a restickify counts for, as it goes through HBM. Separable convolutions need 5.5, scans no more.
RELAID = 5.5


def lanes_of(form: str) -> int:
    """Return the elements per stick of a format."""
    return device_format(form).elements_per_stick()


def block_of(form: str) -> int:
    """Return the elements along a stick dimension that stay together in a format."""
    return block(lanes_of(form), WIDENED if form in (FP32.name, INT32.name) else STANDARD)


class LayoutPlanner:
    """Planner of buffers and steps of one function; every method leaves a correct program."""

    def __init__(self, *, keep_float32: bool = False, relaid: float = RELAID) -> None:
        """Starts with an empty plan; `keep_float32` stores float32 as it is, `relaid` as in `weight_of`."""
        self.keep_float32, self.relaid, self.items = keep_float32, relaid, list[Item]()
        self.origins: Origins | None = None
        self.kept = set[Operation]()  # ops that keep float32 by name
        self.later: Callable[[SSAValue, int], float] = lambda _value, _stick: 0.0  # see `LaterReads.cost`
        self.given: dict[SSAValue, Known] | None = None  # of a region: what its caller knows of its arguments
        self.hosts: dict[SSAValue, bool] = {}  # host tensors, and whether they are laid out ahead of time
        self.written = set[SSAValue]()  # host tensors that the program gives new values
        self.placed = set[SSAValue]()  # host tensors that have the default layout
        self.carried: dict[SSAValue, int | None] = {}  # what a loop carries, and the result that is its next value
        self.room = WeightRoom()
        self.packed: dict[Hashable, Any] = {}  # weights of words; see `unpacking`
        self.versions: dict[SSAValue, DeviceForms] = {}
        self.replaced: dict[Operation, DeviceForms] = {}  # blocks that are not made of what they replace, by their puts
        self.origin: Operation | None = None
        self.chosen, self.arguments, self.ranges = ChosenLayouts(), ArgumentLayouts(), Ranges()
        self.all_integers = Ranges(checks=False, beyond_device=True)
        self._constants: dict[tuple[Attribute, tuple[int, ...], StickLayout, str], PlannedBuffer] = {}
        self._forms: dict[tuple[int, str, bool], DeviceForms] = {}

    def taken(self, moved: DeviceForms) -> DeviceForms:
        """Return the forms of a weight that the host rearranges, for which there is room."""
        if moved.host is not None:
            self.room.take(moved.host, moved.shape)
        return moved

    def define(self, buffer: PlannedBuffer) -> PlannedBuffer:
        """Add a buffer to the plan."""
        self.items.append(Define(buffer, self.origin))
        return buffer

    def step(
        self,
        function: str,
        space: tuple[IterDim, ...],
        inputs: list[Use],
        output: Use,
        axis: int | None = None,
        *,
        integers: bool = False,
        constants: Mapping[str, float] | None = None,
        element: Attribute | None = None,
    ) -> None:
        """Add a kernel step; operands gain the padding that their maps require."""
        for number, (buffer, index) in enumerate((*inputs, output)):
            buffer.suit(index, axis if number == 1 else None)
        known = dict(constants or {})
        self.items.append(PlannedKernel(function, space, inputs, output, self.origin, axis, integers, known, element))

    def of(self, value: SSAValue) -> DeviceForms:
        """Return the device forms of a value, created at first request."""
        if value not in self.versions:
            made = DeviceForms(shape_of(value), stored_format(element_of(value), keep_float32=self.keep_float32))
            if value in self.hosts:
                made = made.given(value, prepared=self.hosts[value])
            self.versions[value] = self._where_placed(made)
        return self.versions[value]

    def _where_placed(self, made: DeviceForms) -> DeviceForms:
        """The forms with a buffer in the default layout, if the host tensor has that."""
        if made.host in self.placed and made.format == DL16.name and not made.saturate:
            layout = StickLayout.default(made.shape, lanes_of(made.format))
            buffer = PlannedBuffer(made.shape, made.format, layout, made.host, fixed=True)
            made.placed, made.buffers = True, [self.define(buffer)]
        return made

    def fresh(self, shape: tuple[int, ...], form: str, stick: int) -> PlannedBuffer:
        """Return a new buffer in the published layout."""
        return self.define(PlannedBuffer(shape, form, StickLayout.published(shape, stick, block_of(form))))

    def constant(self, value: Attribute, shape: tuple[int, ...], stick: int, form: str = DL16.name) -> PlannedBuffer:
        """Return a buffer of constant numbers from the host; equal ones are shared."""
        layout = StickLayout.published(shape, stick, block_of(form))
        key = (value, shape, layout, form)
        if key not in self._constants:
            self._constants[key] = self.define(PlannedBuffer(shape, form, layout, constant=value, zero_padding=True))
        return self._constants[key]

    def number(self, value: float, form: str = DL16.name) -> PlannedBuffer:
        """Return a number on the device."""
        return self.constant(FloatAttr(value, f64), (), UNIT, form)

    def form(self, value: SSAValue, form: str, *, saturate: bool = False) -> DeviceForms:
        """Return the device forms of a value in a format: sent in it by the host, or converted on the device."""
        home = self.of(value)
        key = (id(home), form, saturate)
        if home.format == form:
            return home
        if key not in self._forms:
            made = DeviceForms(home.shape, form, saturate=saturate)
            if home.origin is not None and home.elements:
                made.origin, made.elements = home.origin, home.elements
            elif home.origin is not None and home.origin.format == form:
                made = home.origin
            elif home.provided and (saturate or self._sends(home, form)):
                made = self._where_placed(home.sent_as(form, saturate=saturate))
            elif home.block is not None and home.block.whole.constant is not None:
                made.block = replace(home.block, whole=self.form(home.block.source, form))
            elif home.format == FP8.name and form != DL16.name:  # these convert to DL16 only
                made.origin = self.form(value, DL16.name)
            else:
                made.origin = home
            self._forms[key] = made
        return self._forms[key]

    def _sends(self, home: DeviceForms, form: str) -> bool:
        """Return whether the host may send a tensor in a format: integers only where that rounds none of them."""
        if form != DL16.name or home.host is None or not is_integer(element_of(home.host)):
            return True
        return inside(self.ranges.of(home.host), NARROW)

    def some(self, versions: DeviceForms) -> PlannedBuffer:
        """Return a buffer of the tensor in any available layout."""
        if versions.buffers:
            return versions.buffers[0]
        source = versions.origin or (None if versions.block is None else versions.block.whole)
        if source is not None:
            return self.buffer(versions, self.some(source).layout.stick)
        return self.buffer(versions, len(versions.shape) - 1 if versions.shape else UNIT)

    def _converted(self, versions: DeviceForms, source: PlannedBuffer) -> PlannedBuffer:
        """A buffer in another format, with the same stick dimension."""
        stick = source.layout.stick
        pairs = FP8.name in (source.format, versions.format) and stick != UNIT  # two sticks of DL16 belong to one
        source = self.with_room(source, {stick: block_of(FP8.name)} if pairs else {})
        made = self.fresh(versions.shape, versions.format, stick)
        if pairs:
            made.pad(stick, block_of(FP8.name))
        space, index = elements_of(versions.shape)
        function = COPY if source.format == made.format else CONVERT_STEP
        self.step(function, space, [(source, index)], (made, index), element=next(iter(versions.elements), None))
        versions.buffers.append(made)
        return self._started(made)

    def rounded(self, value: SSAValue) -> DeviceForms:
        """Return a tensor as eight-bit floats, made on the device; its readers convert it back."""
        made = DeviceForms(shape_of(value), FP8.name)
        self._converted(made, self.some(self.form(value, DL16.name)))
        return made

    def _started(self, buffer: PlannedBuffer) -> PlannedBuffer:
        """An FP32 buffer each of whose sticks begins with something: few elements leave the last one empty."""
        stick = buffer.layout.stick
        if stick == UNIT or buffer.format != FP32.name:
            return buffer
        begun = buffer.shape[stick] % buffer.block
        if 0 < begun <= HALF_SLICE and stick not in buffer.filled:
            _, index = elements_of(buffer.shape)
            self.filled_tail((buffer, index), stick, buffer.shape[stick], 0.0)
        return buffer

    def buffer(self, versions: DeviceForms, stick: int) -> PlannedBuffer:
        """Return a tensor's buffer with stick dimension `stick`; relaid on the device if nothing is cheaper."""
        found = versions.find(stick)
        if found is not None:
            return found
        if versions.maker is not None:
            versions.buffers.append(versions.maker(stick))
            return versions.buffers[-1]
        if versions.block is not None and (versions.block.whole.free_layout or not versions.buffers):
            versions.buffers.append(self._block(versions, versions.block, stick))
            return versions.find(stick) or self.buffer(versions, stick)
        if versions.constant is not None:
            versions.buffers.append(self.constant(versions.constant, versions.shape, stick, versions.format))
            return versions.buffers[-1]
        if versions.origin is not None and (made := self._from_origin(versions, versions.origin, stick)) is not None:
            return made
        # A sparse form of an input is sent again: re-laying on the device would move 64 times its bytes.
        sent = versions.host is not None and versions.host not in self.carried and not versions.placed
        sends = self.arguments.sent_stick(versions.host, stick, prepared=versions.prepared)
        if versions.free_layout or (sent and stick == sends == UNIT):
            versions.buffers.append(self._provided(versions, sends))
        if (found := versions.find(stick)) is None:
            versions.buffers.append(found := self.restickify(versions.buffers[0], stick))
        return found

    def _block(self, versions: DeviceForms, block: Block, stick: int) -> PlannedBuffer:
        """A block where it lies: in the layout that is asked for, if the whole tensor is free to have it."""
        alone = block.whole.prepared and not block.whole.buffers
        whole = self.buffer(block.whole, stick) if block.whole.free_layout else self.some(block.whole)
        place = block.dim, versions.shape[block.dim], block.position, block.named
        return self.define(BlockBuffer(whole, *place, outermost=alone))

    def _provided(self, versions: DeviceForms, stick: int) -> PlannedBuffer:
        """A buffer that the host fills, or the caller of a region."""
        ours = versions.argument is None and versions.host not in self.carried
        made = self.arguments.order(
            PlannedBuffer(
                versions.shape,
                versions.format,
                StickLayout.published(versions.shape, stick, block_of(versions.format)),
                versions.host,
                zero_padding=ours and (versions.prepared or versions.format == FP32.name),
                saturate=versions.saturate,
                elements=versions.elements,
                argument=versions.argument,
                moves=versions.moves,
            )
        )
        self.define(made)
        return made if ours else self._started(made)

    def _from_origin(self, versions: DeviceForms, origin: DeviceForms, stick: int) -> PlannedBuffer | None:
        """A converted buffer; DL16 is relaid out before it is widened and after it is narrowed, as it takes less."""
        if versions.format == FP32.name or origin.free_layout:
            return self._converted(versions, self.buffer(origin, stick))
        if (source := origin.find(stick)) is not None:
            return self._converted(versions, source)
        if not versions.buffers:
            self._converted(versions, origin.buffers[0])
        return None

    def restickify(self, source: PlannedBuffer, stick: int) -> PlannedBuffer:
        """Return a copy with another stick dimension; both stick extents become whole sticks in both buffers."""
        relay = self._restickify_wide if source.format == FP32.name else self._restickify
        return relay(source, stick)

    def _restickify_wide(self, source: PlannedBuffer, stick: int) -> PlannedBuffer:
        """The same for FP32: rows that become lanes are put in the order of lanes first, and lanes out of it last."""
        if stick != UNIT:
            source = self._reordered(source, stick, stored=True)
        made = self._restickify(source, stick)
        old = source.layout.stick
        return self._started(made if old == UNIT else self._reordered(made, old, stored=False))

    def _reordered(self, source: PlannedBuffer, dim: int, *, stored: bool) -> PlannedBuffer:
        """A copy with the rows along `dim` in the order in which FP32 sticks would hold them, or back from it."""
        source = self.with_room(source, {dim: block_of(FP32.name)})
        made = self.fresh(source.shape, source.format, source.layout.stick)
        made.pad(dim, block_of(FP32.name))
        for space, *maps in reorderings(source.shape, dim, source.layout.stick):
            self.step(COPY, space, [(source, maps[not stored])], (made, maps[stored]))
        return made

    def _restickify(self, source: PlannedBuffer, stick: int) -> PlannedBuffer:
        block = block_of(source.format)
        entry = isinstance(source, BlockBuffer) and source.is_entry  # the whole has no room of its own behind each
        source = self.copy(source) if entry or (source.fixed and stick == UNIT) else source
        source = self.with_room(source, {stick: block} if stick != UNIT else {})
        made = PlannedBuffer(source.shape, source.format, StickLayout.published(source.shape, stick, block))
        moved = (source.layout.stick, stick)
        for buffer, other in ((source, stick), (made, source.layout.stick)):
            if other == UNIT:
                buffer.reserve_units(source.lanes)
            else:
                buffer.pad(other, block)
        self.define(made)
        dims = [IterDim(f"d{d}", round_up(e, block) if d in moved else e) for d, e in enumerate(source.shape)]
        if UNIT in moved:
            dims.append(IterDim("u", source.lanes))
        index = tuple(LinearExpr.of(d.name) if d.extent > 1 else LinearExpr() for d in dims)
        self.step(RESTICKIFY_STEP, tuple(d for d in dims if d.extent > 1), [(source, index)], (made, index))
        return made

    def with_room(self, buffer: PlannedBuffer, demands: Mapping[int, int]) -> PlannedBuffer:
        """Return the buffer padded to whole multiples along dimensions, or a copy if earlier demands conflict."""
        if not all(buffer.has_room(dim, multiple) for dim, multiple in demands.items()):
            buffer = self.copy(buffer)
        for dim, multiple in demands.items():
            buffer.pad(dim, multiple)
        return buffer

    def copy(self, source: PlannedBuffer, layout: StickLayout | None = None) -> PlannedBuffer:
        """Return the same elements in a buffer without the padding that other readers require, or in a layout."""
        made = self.fresh(source.shape, source.format, source.layout.stick)
        if layout is not None:
            made.layout, made.fixed = layout, True
        space, index = elements_of(source.shape)
        self.step(COPY, space, [(source, index)], (made, index))
        return made

    def laid_out(self, versions: DeviceForms, layout: StickLayout) -> PlannedBuffer:
        """Return a tensor in a layout, copied to it where it does not lie so."""
        source = self.buffer(versions, layout.stick)
        if not source.layout.lies_as(layout, source.lanes):
            return self.copy(source, layout)
        source.layout = layout  # the same places, in another order of dimensions that have one stick
        return source

    def operand(self, versions: DeviceForms, index: IndexMap, lane: str | None, space: tuple[IterDim, ...]) -> Use:
        """Return a buffer and map through which an operation with `lane` in its lanes can read a tensor."""
        stick = stick_for(index, lane, block_of(versions.format))
        if stick is not None:
            buffer = self.buffer(versions, stick)
            return self.with_room(buffer, multiples(index, buffer.layout)), index
        copied, own = self.copied(versions, index, space)
        where = next(d for d, e in enumerate(own) if e.terms[0][0] == lane)
        return self.buffer(copied, where), own

    def copied(
        self, versions: DeviceForms, index: IndexMap, space: tuple[IterDim, ...]
    ) -> tuple[DeviceForms, IndexMap]:
        """Return a dense copy of the elements read by `index`: one dimension per loop it uses."""
        used = {n for e in index for n, _ in e.terms}
        dims = tuple(d for d in space if d.name in used)
        own = tuple(LinearExpr.of(d.name) for d in dims)
        move = Move(tuple((d.name, d.extent) for d in dims), index, own, tuple(d.extent for d in dims))
        if versions.host not in self.written and (moved := versions.after(move, self.room)) is not None:
            return self.taken(moved), own
        made = DeviceForms(move.shape, versions.format)
        lane = self._copy_lane(versions, index, dims)
        source, _ = self.operand(versions, index, lane, dims)
        stick = UNIT if lane is None else [d.name for d in dims].index(lane)
        out = self.fresh(made.shape, made.format, stick)
        made.buffers.append(out)
        self.step(COPY, dims, [(source, index)], (out, own))
        return made, own

    def _copy_lane(self, versions: DeviceForms, index: IndexMap, dims: tuple[IterDim, ...]) -> str | None:
        """The loop a copy keeps in its lanes: one that needs no re-laying if there is one, else the longest."""
        lanes = block_of(versions.format)
        possible = [(d, stick) for d in dims if (stick := stick_for(index, d.name, lanes)) is not None]
        kept = [(d, stick) for d, stick in possible if versions.find(stick) is not None]
        return max(kept or possible, key=lambda found: found[0].extent)[0].name if possible else None

    def filled_tail(self, use: Use, dim: int, extent: int, fill: float) -> Use:
        """Return the operand with a number behind `extent` along its stick dimension, up to the end of its block."""
        buffer, _ = use
        lanes = buffer.block
        if extent % lanes == 0 or buffer.behind(dim) == fill:
            return use
        mask = self.constant(FirstOnesAttr(IntegerAttr(extent % lanes, 64)), (lanes,), 0, buffer.format)
        dims, own = elements_of(buffer.shape, dim, lanes)
        last = tuple(e.shifted(extent - extent % lanes) if d == dim else e for d, e in enumerate(own))
        through = [(mask, (LinearExpr.of(f"d{dim}"),)), (buffer, last), (self.number(fill, buffer.format), ())]
        self.step(SELECT, dims, through, (buffer, last))
        buffer.filled[dim] = fill
        return use
