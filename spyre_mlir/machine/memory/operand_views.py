"""Strided access of one operand: from start addresses and a layout to numpy views, without loops over elements.

An operand is seen as an array with one axis per dim of the iteration space, in iteration order; dims it does not have
are of size one. Behind it are byte strides: per dim the step from slice to slice, from element to element (for the
stick dim from stick to stick) and the lane.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, lru_cache
from math import prod

import numpy as np

from spyre_mlir.dialects.superdsc.model import keys
from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor, Dim, IndirectKind, OpClass, Operand
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.hw.spec import STICK_BYTES
from spyre_mlir.machine.faults import FaultKind, FaultLog, Place, fault
from spyre_mlir.machine.memory.exact import Bools, Ints, Memory, element_bytes
from spyre_mlir.machine.memory.frames import StridedAxis
from spyre_mlir.machine.memory.strided_access import ByteAccess, TrackedArray


class OperandLayout:
    """One operand of one descriptor, with its start addresses resolved.

    Args:
        view: the descriptor.
        index: which operand.
        memory: gives the scratchpads' place; it is not kept, so that a plan may hold the layout.
        symbols: byte address per symbol id.

    Raises:
        MachineFault: a symbol has no value, or a start address is not on a stick.
    """

    def __init__(self, view: Descriptor, index: int, memory: Memory, symbols: Mapping[int, int] | None = None) -> None:
        self.view = view
        self.index = index
        self.operand: Operand = view.operands[index]
        self.spec = memory.spec
        self.word_bytes = element_bytes(self.operand.format)
        # The writer's layout in LX that was last found to divide the tensor in the same way.
        self.agrees_with: OperandLayout | None = None
        self.name = f"{view.index}:{view.op_func_name}"
        self.place = Place(op=self.name, tensor=f"Tensor{index}")
        self.starts = self._resolve(memory, symbols or {})
        strides = self.operand.stick_strides()
        self._strides = {k: n * STICK_BYTES for k, n in strides.items() if k not in _picked(view, index)}

    @property
    def labels(self) -> frozenset[str]:
        """The dims that decide the address; in a gathered table the index replaces the others."""
        return frozenset(self._strides)

    def _at(self, core: int, low: int | None = None, high: int | None = None) -> Place:
        return Place(op=self.place.op, tensor=self.place.tensor, core=core, low=low, high=high)

    def _resolve(self, memory: Memory, symbols: Mapping[int, int]) -> Ints:
        try:
            starts = _numbers(self.operand.start)
            if self.operand.symbolic:
                starts = self._bound(starts, symbols)
        except OverflowError as error:
            message = "a start address has more than 63 bits, and lies on no card"
            raise fault(FaultKind.OUT_OF_BOUNDS, message, self.place) from error
        stick = STICK_BYTES
        if (off := starts % stick != 0).any():
            core = int(off.argmax())
            message = f"start address {int(starts[core]):#x} is not a multiple of {stick}"
            raise fault(FaultKind.MISALIGNED, message, self._at(core, int(starts[core])))
        if self.operand.component != keys.LX:
            return starts
        memory.add_scratchpads()
        last = starts + self.operand.allocated_sticks() * stick
        if (off := (last > self.spec.lx_bytes) | (starts < 0)).any():
            core = int(off.argmax())
            text = f"{int(starts[core]):#x}..{int(last[core]):#x}"
            message = f"LX bytes {text} do not fit the scratchpad of {self.spec.lx_bytes:#x} bytes"
            raise fault(FaultKind.LX_OVERFLOW, message, self._at(core, int(starts[core]), int(last[core])))
        bases = memory.scratchpad_address(0, 0) + self.spec.lx_bytes * np.arange(len(starts), dtype=np.int64)
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

    def require_span(self, log: FaultLog) -> None:
        """Refuse an operand whose addresses on one core lie too far apart.

        Args:
            log: takes the fault.

        Raises:
            MachineFault: ``span``.
        """
        if self.operand.component == keys.LX:
            return
        if self.operand.allocated_sticks() * STICK_BYTES <= self.spec.span_bytes:
            return
        access = self.core(0)
        reach = access.high - access.low
        if reach > self.spec.span_bytes:
            message = f"one core spans {reach} bytes of one tensor, at most {self.spec.span_bytes} are reachable"
            hint = "split an outer dim over more cores"
            log.meet(fault(FaultKind.SPAN, message, access.span, hint=hint))

    def core(self, core: int) -> ByteAccess:
        """Return the elements one core touches; addresses in LX are card-wide."""
        axes = tuple(self._axes(dim, dim.per_core, None) for dim in self.view.dims)
        shape = tuple(dim.per_core if self._has(dim) else 1 for dim in self.view.dims)
        place = self._at(core)
        return ByteAccess(int(self.starts[core]), axes, shape, self.operand.format, place)

    def whole(self, slices: Ints) -> ByteAccess | None:
        """Return the elements all cores touch as one array, if start addresses are affine in the slice numbers.

        Args:
            slices: slice number per core and iteration dim.
        """
        first, units = _unit_cores(slices.tobytes(), len(slices), tuple(dim.split for dim in self.view.dims))
        origin = int(self.starts[first])
        steps = np.asarray([0 if core is None else int(self.starts[core]) - origin for core in units], dtype=np.int64)
        if not np.array_equal(self.starts, origin + slices @ steps):
            return None
        pairs = tuple(zip(self.view.dims, steps.tolist(), strict=True))
        axes = tuple(self._axes(dim, dim.per_core, step) for dim, step in pairs)
        shape = tuple(dim.extent if self._has(dim) or step else 1 for dim, step in pairs)
        return ByteAccess(origin, axes, shape, self.operand.format, self.place)

    @cached_property
    def tensor_extents(self) -> tuple[int, ...]:
        """Sticks, or steps, of the whole tensor in LX along each dimension that has several, innermost first."""
        splits = {dim.label: dim.split for dim in self.view.dims}
        counts = zip(self.operand.order, self.operand.counts(), strict=True)
        whole = [count * splits.get(label, 1) for label, count in counts]
        return tuple(extent for extent in whole if extent > 1)

    @cached_property
    def stick_places(self) -> Ints:
        """Per core, the place in the whole tensor of each of its sticks in LX, in the order of their addresses."""
        counts, slices = self.operand.counts(), slice_table(self.view)
        labels = [dim.label for dim in self.view.dims]
        splits = [self.view.dims[labels.index(label)].split if label in labels else 1 for label in self.operand.order]
        steps = [prod(n * s for n, s in zip(counts[:at], splits[:at], strict=True)) for at in range(len(counts))]
        result = np.zeros((len(slices), 1), dtype=np.int64)
        for label, count, step in zip(self.operand.order, counts, steps, strict=True):
            own = slices[:, labels.index(label)] * count * step if label in labels else np.zeros(len(slices), np.int64)
            line = own[:, None] + np.arange(count) * step
            # The first entry of the order is the innermost, so earlier dims run fastest.
            result = (line[:, :, None] + result[:, None, :]).reshape(len(slices), -1)
        return result

    @cached_property
    def accessed_sticks(self) -> Bools:
        """Return which sticks of a core in LX, in address order, are accessed and not gaps between accessed ones."""
        held = self.operand.stick_lanes
        touched = {dim.label: -(-dim.per_core // held.get(dim.label, 1)) for dim in self.view.dims}
        result = np.ones(1, dtype=np.bool_)
        for label, count in zip(self.operand.order, self.operand.counts(), strict=True):
            line = np.arange(count) < touched.get(label, count)
            result = (line[:, None] & result[None, :]).reshape(-1)
        return result

    def _has(self, dim: Dim) -> bool:
        return dim.label in self._strides

    def _axes(self, dim: Dim, count: int, step: int | None) -> tuple[StridedAxis, ...]:
        """Axes of one dim: slices (when ``step`` is given), elements or sticks, lanes."""
        outer = () if step is None else (StridedAxis(dim.split, step),)
        if not self._has(dim):
            # A dim the operand lacks costs nothing, unless each slice has a copy of its own, as in LX.
            return (*outer, StridedAxis(count, 0)) if step else (StridedAxis(1, 0),)
        count = self._inside(dim, count)
        stride = self._strides[dim.label]
        inside = self.operand.stick_lanes
        if dim.label not in inside:
            return _merged((*outer, StridedAxis(count, stride)))
        lanes = inside[dim.label]
        inner = prod(n for label, n in inside.items() if list(inside).index(label) < list(inside).index(dim.label))
        sticks, rest = divmod(count, lanes)
        if rest:
            # Index tensors alone may end inside a stick (interface specification, address rules; certain).
            in_a_row = _is_index(self.operand) and stride == STICK_BYTES
            if (sticks == 0 or in_a_row) and dim.split == 1:
                return (StridedAxis(count, self.word_bytes),)
            message = f"a core's {count} elements of stick dim {dim.label} are not whole sticks of {lanes}"
            raise fault(FaultKind.MISALIGNED, message, self.place, hint="pad the dim to whole sticks per core")
        return (*_merged((*outer, StridedAxis(sticks, stride))), StridedAxis(lanes, inner * self.word_bytes))

    def _inside(self, dim: Dim, count: int) -> int:
        """Return how many of a core's elements along a dim the buffer holds; a restickify may exceed it."""
        held = self.operand.extents[self.operand.order.index(dim.label)]
        wanted = count if self.operand.component == keys.LX else dim.extent
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


def _is_index(operand: Operand) -> bool:
    return operand.indirect is not None and operand.indirect.kind is IndirectKind.INDEX


def _picked(view: Descriptor, index: int) -> tuple[str, ...]:
    """The iteration dims that stand in a gathered table's order in place of the dim that the index picks from."""
    link = view.operands[index].indirect
    if link is None or link.kind is not IndirectKind.VALUE:
        return ()
    return view.operands[link.partner].order


def _merged(axes: tuple[StridedAxis, ...]) -> tuple[StridedAxis, ...]:
    """Slices and elements in one axis where the step allows it."""
    if len(axes) == 2 and axes[0].stride == axes[1].count * axes[1].stride:
        return (StridedAxis(axes[0].count * axes[1].count, axes[1].stride),)
    return axes


def slice_table(view: Descriptor) -> Ints:
    """Return the slice number per core and iteration dim."""
    labels = [dim.label for dim in view.dims]
    return np.asarray([[row[label] for label in labels] for row in view.core_slices], dtype=np.int64)


@lru_cache(maxsize=1024)
def _unit_cores(table: bytes, cores: int, splits: tuple[int, ...]) -> tuple[int, tuple[int | None, ...]]:
    """The core with the first slice of every dim, and per dim that is divided the one with the second slice of it."""
    slices: Ints = np.frombuffer(table, np.int64).reshape(cores, len(splits))
    units = np.eye(len(splits), dtype=np.int64)
    found = (_core_of(slices, unit) if split > 1 else None for unit, split in zip(units, splits, strict=True))
    return _core_of(slices, np.zeros(len(splits), np.int64)), tuple(found)


def _core_of(slices: Ints, wanted: Ints) -> int:
    """The core that works on the given slices; -1 if none does."""
    hits = np.flatnonzero((slices == wanted).all(axis=1))
    return int(hits[0]) if hits.size else -1


__all__ = ["ByteAccess", "OperandLayout", "TrackedArray", "slice_table"]
