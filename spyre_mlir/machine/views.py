"""Strided access of one operand: from start addresses and a layout to numpy views, without loops over elements.

An operand is seen as an array with one axis per dim of the iteration space, in iteration order; dims it does not have
are of size one. Behind it are byte strides: per dim the step from slice to slice, from element to element (for the
stick dim from stick to stick) and the lane.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod
from typing import NoReturn, TypeVar

import numpy as np
import numpy.typing as npt

from spyre_mlir.dialects.superdsc.descriptor import Descriptor, Dim, IndirectKind, OpClass, Operand
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.machine.faults import FaultKind, Place, fault
from spyre_mlir.machine.frames import Axis, Frame, fine_axes
from spyre_mlir.machine.memory import Bools, Floats, Ints, Memory, Region, Stored, Window, element_bytes
from spyre_mlir.machine.states import STICK, Reading, StickBox

Number = TypeVar("Number", bound=np.generic)


@dataclass(frozen=True)
class Tensor:
    """Values an operation works on, and which of them were ever written (None: all).

    Args:
        values: one axis per axis of the frame the operation works in.
        written: one axis per iteration dim, of size one where nothing changes along it.
    """

    values: Floats
    written: Bools | None = None


@dataclass(frozen=True)
class Access:
    """The elements of one operand that one core, or all cores together, touch.

    Args:
        base: byte address of the element at index zero.
        axes: per iteration dim, its axes from the slowest to the fastest.
        shape: extent per iteration dim as the operation sees it; larger than the axes where the buffer falls short.
        format: data format name.
        place: the operation and tensor, for faults.
    """

    base: int
    axes: tuple[tuple[Axis, ...], ...]
    shape: tuple[int, ...]
    format: str
    place: Place

    @cached_property
    def word_bytes(self) -> int:
        """Bytes of one element."""
        return element_bytes(self.format)

    @cached_property
    def flat_axes(self) -> tuple[Axis, ...]:
        """Axes of more than one step, of all dims, in order."""
        return tuple(axis for axes in self.axes for axis in axes if axis.count != 1)

    @property
    def visible(self) -> tuple[int, ...]:
        """Extent per iteration dim that lies inside the buffer."""
        return tuple(prod(axis.count for axis in axes) for axes in self.axes)

    @property
    def low(self) -> int:
        """First byte touched."""
        return self.base + sum(min(0, a.stride * (a.count - 1)) for a in self.flat_axes)

    @property
    def high(self) -> int:
        """One past the last byte touched."""
        return self.base + sum(max(0, a.stride * (a.count - 1)) for a in self.flat_axes) + self.word_bytes

    @property
    def injective(self) -> bool:
        """Whether different indices are known to be different bytes; False when in doubt."""
        reach = self.word_bytes
        for axis in sorted(self.flat_axes, key=lambda a: abs(a.stride)):
            if abs(axis.stride) < reach:
                return False
            reach += abs(axis.stride) * (axis.count - 1)
        return True

    def addresses(self) -> Ints:
        """Byte address of every visible element, shaped as the iteration dims."""
        result = np.full((1,) * len(self.flat_axes), self.base, dtype=np.int64)
        for place, axis in enumerate(self.flat_axes):
            line = np.arange(axis.count, dtype=np.int64) * axis.stride
            result = result + line.reshape([-1 if at == place else 1 for at in range(len(self.flat_axes))])
        return result.reshape(self.visible)

    def read(self, memory: Memory) -> Tensor:
        """Copy the elements out of memory, one axis per iteration dim.

        Raises:
            MachineFault: out of bounds, or an element was last written in another format.
        """
        written = self.written(memory)
        stored = self._window(memory).elements(memory.stored_type(self.format))
        values = memory.numbers(stored, self.format).reshape(self.visible)
        if self.visible == self.shape:
            return Tensor(values, written)
        inside = tuple(slice(0, n) for n in self.visible)
        padded, known = np.zeros(self.shape, values.dtype), np.zeros(self.shape, dtype=np.bool_)
        padded[inside] = values
        known[inside] = True if written is None else written
        return Tensor(padded, known)

    def write(self, memory: Memory, tensor: Tensor) -> None:
        """Copy an array with one axis per iteration dim into memory; elements that were never written stay so.

        Raises:
            MachineFault: out of bounds.
        """
        inside = tuple(slice(0, n) for n in self.visible)
        self.mark(memory, None if tensor.written is None else tensor.written[inside])
        stored = self._window(memory).elements(memory.stored_type(self.format))
        memory.put(stored, tensor.values[inside].reshape(stored.shape), self.format)

    def view(self, memory: Memory, frame: Frame) -> Stored:
        """The elements where they are, one axis per axis of the frame.

        Raises:
            MachineFault: out of bounds.
        """
        axes = [axis for place, own in enumerate(self.axes) for axis in fine_axes(own, frame.counts[place])]
        region = self._region(memory)
        shape, steps = tuple(axis.count for axis in axes), tuple(axis.stride for axis in axes)
        return Window(region, self.base - region.base, shape, steps).elements(memory.stored_type(self.format))

    def written(self, memory: Memory) -> Bools | None:
        """Which elements were ever written; one axis per iteration dim, of size one where nothing changes along it.

        Raises:
            MachineFault: out of bounds, or an element was last written in another format.
        """
        region = self._region(memory)
        found = self._box(region)
        if found is None:
            addresses = self.addresses()
            reading = region.states.read_elements(addresses - region.base, self.word_bytes, self.format)
            if reading.wrong is not None:
                self._wrong(reading, int(np.ravel_multi_index(reading.wrong, addresses.shape)))
            return reading.written
        box, lane = found
        reading = region.states.read(box, self.format)
        if reading.wrong is not None:
            at = _with_lane(reading.wrong, lane)
            shape = tuple(axis.count for axis in self.flat_axes)
            self._wrong(reading, int(np.ravel_multi_index(at, shape)) if shape else 0)
        return None if reading.written is None else self._by_dims(_moved_lane(reading.written, lane))

    def mark(self, memory: Memory, written: Bools | None) -> None:
        """Remember that the visible elements are written.

        Args:
            memory: where.
            written: which really are, one axis per iteration dim; the others become uninitialised. None: all.

        Raises:
            MachineFault: out of bounds.
        """
        region = self._region(memory)
        region.own()
        found = self._box(region)
        if found is None:
            at = self.addresses() - region.base
            known = None if written is None else np.broadcast_to(written, at.shape)
            region.states.write_elements(at, self.word_bytes, self.format, known, memory.step)
            return
        box, lane = found
        known = None if written is None else self._by_axes(written)
        if known is not None:
            known = known[..., None] if lane is None else np.moveaxis(known, lane, -1)
        region.states.write(box, self.format, known, memory.step)

    def _wrong(self, reading: Reading, flat: int) -> NoReturn:
        message = f"read as {self.format}, last written as {reading.found}"
        raise fault(FaultKind.WRONG_FORMAT, message, self._place_of(flat))

    def _box(self, region: Region) -> tuple[StickBox, int | None] | None:
        """The sticks touched, and which of the flat axes runs inside one; None if the access is no box of sticks."""
        lanes = [place for place, axis in enumerate(self.flat_axes) if axis.stride % STICK]
        first = self.base - region.base
        if len(lanes) > 1 or first % STICK:
            return None
        lane = lanes[0] if lanes else None
        count = 1 if lane is None else self.flat_axes[lane].count
        if lane is not None and (self.flat_axes[lane].stride != self.word_bytes or count * self.word_bytes > STICK):
            return None
        outer = [axis for place, axis in enumerate(self.flat_axes) if place != lane]
        shape, steps = tuple(axis.count for axis in outer), tuple(axis.stride // STICK for axis in outer)
        return StickBox(first // STICK, shape, steps, count, self.word_bytes), lane

    def sticks_in(self, array: npt.NDArray[Number], first: int) -> npt.NDArray[Number]:
        """View of the sticks touched in an array with an entry per stick, the first being stick `first`."""
        axes = [axis for axis in self.flat_axes if axis.stride % STICK == 0]
        lanes = [axis for axis in self.flat_axes if axis.stride % STICK]
        # Lanes that reach beyond their stick, in a contiguous index tensor, touch all sticks up to their last.
        reach = sum(axis.stride * (axis.count - 1) for axis in lanes) + self.base % STICK
        shape, size = (*(axis.count for axis in axes), reach // STICK + 1), array.itemsize
        strides = (*(axis.stride // STICK * size for axis in axes), size)
        return np.ndarray(shape, array.dtype, array.data, (self.base // STICK - first) * size, strides)

    def _by_dims(self, mask: Bools) -> Bools:
        """From one axis per flat axis to one per iteration dim."""
        shape: list[int] = []
        wide: list[int] = []
        at = 0
        for axes in self.axes:
            own = [axis.count for axis in axes if axis.count != 1]
            given = mask.shape[at : at + len(own)]
            at += len(own)
            shape.append(1 if prod(given) == 1 else prod(own))
            wide.extend(given if prod(given) == 1 else own)
        return np.broadcast_to(mask, wide).reshape(shape)

    def _by_axes(self, mask: Bools) -> Bools:
        """The other way round."""
        shape: list[int] = []
        for size, axes in zip(mask.shape, self.axes, strict=True):
            own = [axis.count for axis in axes if axis.count != 1]
            shape.extend([1] * len(own) if size == 1 else own)
        return mask.reshape(shape)

    def _region(self, memory: Memory) -> Region:
        return memory.locate(self.low, self.high, self._at(self.low, self.high))

    def _window(self, memory: Memory) -> Window:
        region = self._region(memory)
        shape = tuple(axis.count for axis in self.flat_axes)
        return Window(region, self.base - region.base, shape, tuple(axis.stride for axis in self.flat_axes))

    def _place_of(self, flat: int) -> Place:
        address = int(self.addresses().reshape(-1)[flat])
        return self._at(address, address + self.word_bytes)

    def _at(self, low: int, high: int) -> Place:
        return Place(op=self.place.op, tensor=self.place.tensor, core=self.place.core, low=low, high=high)

    @property
    def span(self) -> Place:
        """The place of everything touched."""
        return self._at(self.low, self.high)

    def place_at(self, index: Sequence[int]) -> Place:
        """The place of the element at an index of the iteration dims."""
        inside = tuple(min(i, n - 1) for i, n in zip(index, self.visible, strict=True))
        return self._place_of(int(np.ravel_multi_index(inside, self.visible)))


class Layout:
    """One operand of one descriptor, with its start addresses resolved.

    Args:
        view: the descriptor.
        index: which operand.
        memory: gives the scratchpads' place.
        symbols: byte address per symbol id.

    Raises:
        MachineFault: a symbol has no value, or a start address is not on a stick.
    """

    def __init__(self, view: Descriptor, index: int, memory: Memory, symbols: Mapping[int, int] | None = None) -> None:
        self.view = view
        self.index = index
        self.operand: Operand = view.operands[index]
        self.memory = memory
        self.spec = memory.spec
        self.word_bytes = element_bytes(self.operand.format)
        self.place = Place(op=f"{view.index}:{view.op_func_name}", tensor=f"Tensor{index}")
        self.starts = self._resolve(symbols or {})
        strides = self.operand.stick_strides()
        self._strides = {k: n * self.spec.stick_bytes for k, n in strides.items() if k not in _picked(view, index)}

    @property
    def labels(self) -> frozenset[str]:
        """The dims that decide the address; in a gathered table the index decides in place of the others."""
        return frozenset(self._strides)

    def _at(self, core: int, low: int | None = None, high: int | None = None) -> Place:
        return Place(op=self.place.op, tensor=self.place.tensor, core=core, low=low, high=high)

    def _resolve(self, symbols: Mapping[int, int]) -> Ints:
        starts = _numbers(self.operand.start)
        if self.operand.symbolic:
            starts = self._bound(starts, symbols)
        stick = self.spec.stick_bytes
        if (off := starts % stick != 0).any():
            core = int(off.argmax())
            message = f"start address {int(starts[core]):#x} is not a multiple of {stick}"
            raise fault(FaultKind.MISALIGNED, message, self._at(core, int(starts[core])))
        if self.operand.component != "lx":
            return starts
        self.memory.add_scratchpads()
        last = starts + self.operand.allocated_sticks() * stick
        if (off := (last > self.spec.lx_bytes) | (starts < 0)).any():
            core = int(off.argmax())
            text = f"{int(starts[core]):#x}..{int(last[core]):#x}"
            message = f"LX bytes {text} do not fit the scratchpad of {self.spec.lx_bytes:#x} bytes"
            raise fault(FaultKind.LX_OVERFLOW, message, self._at(core, int(starts[core]), int(last[core])))
        bases = self.memory.scratchpad_address(0, 0) + self.spec.lx_bytes * np.arange(len(starts), dtype=np.int64)
        return starts + bases

    def _bound(self, ids: Ints, symbols: Mapping[int, int]) -> Ints:
        made = ids.copy()
        for number in dict.fromkeys(self.operand.start):
            symbol = int(number)
            where = ids == symbol
            if symbol not in symbols:
                message = f"symbol {symbol} has no address"
                place = self._at(int(where.argmax()))
                raise fault(FaultKind.UNBOUND_SYMBOL, message, place, hint="bind it in sdsc_execute")
            made[where] = symbols[symbol]
        return made

    def require_span(self) -> None:
        """Refuse an operand of which one core touches addresses too far apart.

        Raises:
            MachineFault: ``span``.
        """
        if self.operand.component == "lx":
            return
        if self.operand.allocated_sticks() * self.spec.stick_bytes <= self.spec.span_bytes:
            return
        access = self.core(0)
        reach = access.high - access.low
        if reach > self.spec.span_bytes:
            message = f"one core spans {reach} bytes of one tensor, at most {self.spec.span_bytes} are reachable"
            hint = "split an outer dim over more cores"
            self.memory.log.meet(fault(FaultKind.SPAN, message, access.span, hint=hint))

    def core(self, core: int) -> Access:
        """The elements one core touches; addresses in LX are card-wide."""
        axes = tuple(self._axes(dim, dim.per_core, None) for dim in self.view.dims)
        shape = tuple(dim.per_core if self._has(dim) else 1 for dim in self.view.dims)
        place = self._at(core)
        return Access(int(self.starts[core]), axes, shape, self.operand.format, place)

    def whole(self, slices: Ints) -> Access | None:
        """The elements all cores touch as one array, if start addresses are affine in the slice numbers.

        Args:
            slices: slice number per core and iteration dim.
        """
        steps: list[int] = []
        for place, dim in enumerate(self.view.dims):
            unit = np.zeros(len(self.view.dims), dtype=np.int64)
            unit[place] = 1
            steps.append(0 if dim.split == 1 else int(self.starts[_core_of(slices, unit)] - self._origin(slices)))
        if not np.array_equal(self.starts, self._origin(slices) + slices @ np.asarray(steps, dtype=np.int64)):
            return None
        pairs = tuple(zip(self.view.dims, steps, strict=True))
        axes = tuple(self._axes(dim, dim.per_core, step) for dim, step in pairs)
        shape = tuple(dim.extent if self._has(dim) or step else 1 for dim, step in pairs)
        return Access(self._origin(slices), axes, shape, self.operand.format, self.place)

    def _origin(self, slices: Ints) -> int:
        return int(self.starts[_core_of(slices, np.zeros(len(self.view.dims), dtype=np.int64))])

    def _has(self, dim: Dim) -> bool:
        return dim.label in self._strides

    def _axes(self, dim: Dim, count: int, step: int | None) -> tuple[Axis, ...]:
        """Axes of one dim: slices (when ``step`` is given), elements or sticks, lanes."""
        outer = () if step is None else (Axis(dim.split, step),)
        if not self._has(dim):
            # A dim the operand lacks costs nothing, unless each slice has a copy of its own, as in LX.
            return (*outer, Axis(count, 0)) if step else (Axis(1, 0),)
        count = self._inside(dim, count)
        stride = self._strides[dim.label]
        if dim.label != self.operand.stick:
            return _merged((*outer, Axis(count, stride)))
        lanes = self.operand.elements_per_stick
        sticks, rest = divmod(count, lanes)
        if rest:
            # Index tensors alone may end inside a stick (interface specification, address rules; certain).
            in_a_row = _is_index(self.operand) and stride == self.spec.stick_bytes
            if (sticks == 0 or in_a_row) and dim.split == 1:
                return (Axis(count, self.word_bytes),)
            message = f"a core's {count} elements of stick dim {dim.label} are not whole sticks of {lanes}"
            raise fault(FaultKind.MISALIGNED, message, self.place, hint="pad the dim to whole sticks per core")
        return (*_merged((*outer, Axis(sticks, stride))), Axis(lanes, self.word_bytes))

    def _inside(self, dim: Dim, count: int) -> int:
        """How many of a core's elements along a dim the buffer holds; a restickify may want more than there are."""
        held = self.operand.extents[self.operand.order.index(dim.label)]
        wanted = count if self.operand.component == "lx" else dim.extent
        if held >= wanted:
            return count
        if self.view.op_class is not OpClass.RESTICKIFY:
            message = f"dim {dim.label} runs over {wanted} elements of a buffer that holds {held}"
            raise fault(FaultKind.OUT_OF_BOUNDS, message, self.place)
        if dim.split != 1:
            raise UnsupportedError(f"a restickify that splits its padded dim {dim.label}", where=str(self.place))
        if dim.label == self.operand.stick:
            lanes = self.operand.elements_per_stick
            return -(-held // lanes) * lanes
        return held


@lru_cache(maxsize=4096)
def _numbers(texts: tuple[str, ...]) -> Ints:
    made = np.asarray([int(text) for text in texts], dtype=np.int64)
    made.setflags(write=False)
    return made


def _with_lane(index: tuple[int, ...], lane: int | None) -> tuple[int, ...]:
    outer = index[:-1]
    return outer if lane is None else (*outer[:lane], index[-1], *outer[lane:])


def _moved_lane(mask: Bools, lane: int | None) -> Bools:
    return mask[..., 0] if lane is None else np.moveaxis(mask, -1, lane)


def _is_index(operand: Operand) -> bool:
    return operand.indirect is not None and operand.indirect.kind is IndirectKind.INDEX


def _picked(view: Descriptor, index: int) -> tuple[str, ...]:
    """The iteration dims that stand in a gathered table's order in place of the dim that the index picks from."""
    link = view.operands[index].indirect
    if link is None or link.kind is not IndirectKind.VALUE:
        return ()
    return view.operands[link.partner].order


def _merged(axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
    """Slices and elements in one axis where the step allows it."""
    if len(axes) == 2 and axes[0].stride == axes[1].count * axes[1].stride:
        return (Axis(axes[0].count * axes[1].count, axes[1].stride),)
    return axes


def slice_table(view: Descriptor) -> Ints:
    """Slice number per core and iteration dim."""
    labels = [dim.label for dim in view.dims]
    return np.asarray([[row[label] for label in labels] for row in view.core_slices], dtype=np.int64)


def _core_of(slices: Ints, wanted: Ints) -> int:
    """The core that works on the given slices; -1 if none does."""
    hits = np.flatnonzero((slices == wanted).all(axis=1))
    return int(hits[0]) if hits.size else -1
