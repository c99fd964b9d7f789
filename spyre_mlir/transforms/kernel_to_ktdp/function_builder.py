"""Builder of one KTIR function for the kernels' lowerings: constants, core slices, views, tiles, loops."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import copysign, inf

import numpy as np
from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import (
    AnyFloat,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    TensorType,
    f16,
    f32,
    i32,
    i64,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.utils.hints import isa

from spyre_mlir.dialects.ktdp import tiles, views
from spyre_mlir.dialects.ktdp.affine import box_set, order_map
from spyre_mlir.dialects.ktdp.attributes import GLOBAL, memory_space
from spyre_mlir.dialects.ktdp.grid import GetComputeTileIdOp
from spyre_mlir.dialects.spyre.kernel_loop import TileOp
from spyre_mlir.dialects.spyre.kernel_view import ViewOp
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.hw import formats
from spyre_mlir.transforms.kernel_to_ktdp.slices import ONE, SliceForm
from spyre_mlir.transforms.kernel_to_ktdp.tiles import LoopPart, OperandWalk, TiledKernel

# Element types of KTIR programs. DL16 is written as f16, as the front end in use today does (torch-spyre ktir.py;
# certain); integers index only.
ELEMENTS: dict[str, Attribute] = {
    formats.DL16.name: f16,
    formats.FP32.name: f32,
    formats.INDEX.name: i32,
    formats.INT32.name: i32,
}

_LARGEST: dict[Attribute, float] = {f16: float(np.finfo(np.float16).max), f32: float(np.finfo(np.float32).max)}


def _held(value: float, element: AnyFloat) -> float:
    """The number, or infinity beyond the largest of its type, as a cast of torch's makes it."""
    return copysign(inf, value) if abs(value) > _LARGEST[element] else value


def element_type(form: str) -> Attribute:
    """Return the element type of a device format.

    Raises:
        UnsupportedError: none does.
    """
    if form not in ELEMENTS:
        raise UnsupportedError(f"elements of format {form}", hint=f"KTIR programs have {', '.join(ELEMENTS)}")
    return ELEMENTS[form]


def tensor_of(element: Attribute, shape: Sequence[int]) -> TensorType[Attribute]:
    """Return a tensor type."""
    return TensorType(element, shape)


def shape_of(value: SSAValue) -> tuple[int, ...]:
    """Extents of a tensor."""
    return tuple(_tensor_type(value).get_shape())


def element_of(value: SSAValue) -> AnyFloat:
    """Element type of a tensor of numbers."""
    element = _tensor_type(value).get_element_type()
    assert isinstance(element, AnyFloat)
    return element


def _tensor_type(value: SSAValue) -> TensorType[Attribute]:
    assert isa(value.type, TensorType[Attribute])
    return value.type


@dataclass(frozen=True)
class Span:
    """The steps of one axis that a tile covers.

    Attributes:
        whole: first step, counted over all cores.
        local: first step, counted in the slice of the core.
        count: how many steps.
    """

    whole: SSAValue
    local: SSAValue
    count: int


Box = Mapping[LoopPart, Span]


@dataclass(frozen=True)
class Held:
    """A tensor that a core holds of a buffer between kernels, and which elements it contains."""

    value: SSAValue
    form: SliceForm


@dataclass
class Code:
    """One function under construction.

    Attributes:
        pointers: the argument of every buffer in device memory, by the buffer of the kernel level.
        held: the value of every buffer that has one here.
        trips: the induction variables of the kernel level's loops, as they are here.
    """

    pointers: Mapping[SSAValue, SSAValue]
    held: dict[object, Held] = field(default_factory=dict[object, Held])
    trips: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    heads: list[Operation] = field(default_factory=list[Operation])
    ops: list[Operation] = field(default_factory=list[Operation])
    current: Operation | None = None
    _entry: list[Operation] = field(default_factory=list[Operation])
    _core: SSAValue | None = None
    _known: dict[tuple[object, ...], SSAValue] = field(default_factory=dict[tuple[object, ...], SSAValue])

    def put(self, op: Operation) -> None:
        """Append an op."""
        if self.current is not None:
            op.location = self.current.location
        self.ops.append(op)

    def add(self, op: Operation, hint: str | None = None) -> SSAValue:
        """Append an op and return its result."""
        self.put(op)
        op.results[0].name_hint = hint
        return op.results[0]

    def head(self, key: tuple[object, ...], make: Callable[[], Operation], hint: str) -> SSAValue:
        """Return the result of an op that is written once, before all loops."""
        if key not in self._known:
            op = make()
            op.results[0].name_hint = hint
            self.heads.append(op)
            self._known[key] = op.results[0]
        return self._known[key]

    @property
    def core(self) -> SSAValue:
        """The number of the core."""
        if self._core is None:
            op = GetComputeTileIdOp(1)
            op.results[0].name_hint = "core"
            self.heads.insert(0, op)
            self._core = op.results[0]
        return self._core

    def index(self, value: int) -> SSAValue:
        """Return a constant of type index."""
        return self.head((value,), lambda: arith.ConstantOp(IntegerAttr(value, IndexType())), f"c{value}")

    def number(self, value: float, element: AnyFloat) -> SSAValue:
        """Return a constant number."""
        held = _held(value, element)
        return self.head(("number", value, element), lambda: arith.ConstantOp(FloatAttr(held, element)), "number")

    def full(self, value: float, element: AnyFloat, shape: Sequence[int]) -> SSAValue:
        """Return a tensor of one number."""
        kind = TensorType(element, shape)

        def make() -> Operation:
            return arith.ConstantOp(DenseIntOrFPElementsAttr.from_list(kind, [_held(value, element)]))

        return self.head(("full", value, kind), make, "numbers")

    def slice_of(self, kernel: TiledKernel, name: str) -> SSAValue:
        """Return the slice of a divided loop that the core has."""
        cores, slices = kernel.places[name]
        value = self.core
        if cores > 1:
            step = self.index(cores)
            value = self.head(("div", cores), lambda: arith.DivUIOp(self.core, step), "upper")
        if cores * slices < kernel.cores:
            upper, count = value, self.index(slices)
            value = self.head(("rem", cores, slices), lambda: arith.RemUIOp(upper, count), "slice")
        return value

    def first_step(self, kernel: TiledKernel, name: str) -> SSAValue:
        """Return the first step of the outermost part of a loop on this core."""
        cut = kernel.cuts[name]
        if cut.split == 1:
            return self.index(0)
        part, steps = self.slice_of(kernel, name), self.index(cut.steps)
        if cut.steps == 1:
            return part
        return self.head(("first", part, cut.steps), lambda: arith.MuliOp(part, steps), f"first_{name}")

    def plus(self, left: SSAValue, right: SSAValue) -> SSAValue:
        """Return the sum of two indices; zero is not added."""
        zero = self.index(0)
        if left is zero:
            return right
        return left if right is zero else self.add(arith.AddiOp(left, right))

    @contextmanager
    def kernel(self) -> Generator[None, None, None]:
        """Collect the ops of one kernel; those of `at_entry` come before all its loops."""
        outside, self.ops = self.ops, []
        self._entry = []
        yield
        outside += [*self._entry, *self.ops]
        self.ops = outside

    @contextmanager
    def at_entry(self) -> Generator[None, None, None]:
        """Collect ops that come before the loops of the current kernel."""
        inside, self.ops = self.ops, self._entry
        yield
        self.ops = inside

    @contextmanager
    def loop(
        self, count: int, step: int, carried: Sequence[SSAValue] = (), *, first: int = 0, held: Sequence[object] = ()
    ) -> Generator[OpenLoop, None, None]:
        """Write a loop from `first` to `count`; set `results` to its yielded values before leaving it.

        Args:
            count: where it ends.
            step: from trip to trip.
            carried: what goes from trip to trip.
            first: where it starts.
            held: buffers whose values go from trip to trip too; at the end of a trip in the form of its beginning.
        """
        low, high, by = self.index(first), self.index(count), self.index(step)
        before = dict(self.held)
        start = [*carried, *(before[key].value for key in held)]
        block = Block(arg_types=[IndexType(), *(v.type for v in start)])
        outside, self.ops = self.ops, []
        loop = OpenLoop(block.args[0], list(block.args[1 : len(carried) + 1]))
        self._hold(held, before, block.args[len(carried) + 1 :])
        yield loop
        self.put(scf.YieldOp(*loop.results, *(self.held[key].value for key in held)))
        block.add_ops(self.ops)
        self.ops = outside
        op = scf.ForOp(low, high, by, start, Region(block))
        self.put(op)
        loop.results = list(op.results[: len(carried)])
        self.held = before
        self._hold(held, before, op.results[len(carried) :])

    def _hold(self, keys: Sequence[object], forms: Mapping[object, Held], values: Sequence[SSAValue]) -> None:
        self.held |= {key: Held(value, forms[key].form) for key, value in zip(keys, values, strict=True)}

    @contextmanager
    def branch(self, condition: SSAValue) -> Generator[None, None, None]:
        """Write a branch for ops that run only where a condition holds."""
        outside, self.ops = self.ops, []
        yield
        self.put(scf.YieldOp())
        inside, self.ops = self.ops, outside
        self.put(scf.IfOp(condition, [], inside))

    def view(self, reading: OperandWalk, buffer: SSAValue, axes: Sequence[LoopPart], kernel: TiledKernel) -> SSAValue:
        """Return the view of an operand along axes."""
        sizes = [1 if a == ONE else kernel.count(a) for a in axes]
        strides = [reading.strides.get(a, 1) for a in axes]
        return self.raw_view(buffer, reading, sizes, strides)

    def raw_view(
        self, buffer: SSAValue, reading: OperandWalk, sizes: Sequence[int], strides: Sequence[int]
    ) -> SSAValue:
        """Return a view of a buffer from sizes and strides."""
        element = element_type(reading.tensor.format)
        start = self._start(buffer, reading)

        def make() -> Operation:
            return views.ConstructMemoryViewOp(start, sizes, strides, box_set(sizes), memory_space(GLOBAL), element)

        if isinstance(buffer.owner, TileOp):  # it moves from trip to trip
            return self.add(make(), "tile_view")
        key = ("view", start, tuple(sizes), tuple(strides), element)
        return self.head(key, make, f"{start.name_hint or 'buffer'}_view")

    def _start(self, buffer: SSAValue, reading: OperandWalk) -> SSAValue:
        if isinstance(view := buffer.owner, ViewOp):
            return self._start(view.source, reading)
        if isinstance(tile := buffer.owner, TileOp):
            return self._tile_start(tile, reading)
        pointer = self.pointers[buffer]
        if reading.offset == 0:
            return pointer
        offset = self.index(reading.offset)
        return self.head(("start", pointer, reading.offset), lambda: arith.AddiOp(pointer, offset), "start")

    def _tile_start(self, tile: TileOp, reading: OperandWalk) -> SSAValue:
        """The first element of a part of a buffer that a loop moves."""
        size = formats.FORMATS[reading.tensor.format].bits // 8
        step = self.index(tile.step_bytes // size)
        moved = self.add(arith.MuliOp(self.trips[tile.index], step))
        if tile.first_bytes:
            moved = self.add(arith.AddiOp(moved, self.index(tile.first_bytes // size)))
        return self.add(arith.AddiOp(self._start(tile.source, reading), moved), "start")

    def tile(
        self, reading: OperandWalk, buffer: SSAValue, axes: Sequence[LoopPart], box: Box, kernel: TiledKernel
    ) -> SSAValue:
        """Return the access tile of an operand: the steps of a box along axes."""
        zero = self.index(0)
        spans = [Span(zero, zero, 1) if a == ONE else box[a] for a in axes]
        view, starts, shape = (
            self.view(reading, buffer, axes, kernel),
            [s.whole for s in spans],
            [s.count for s in spans],
        )
        return self.add(tiles.ConstructAccessTileOp(view, starts, box_set(shape), order_map(range(len(shape))), shape))

    def load(self, tile: SSAValue, form: str) -> SSAValue:
        """Load the elements of a tile."""
        return self.add(tiles.LoadOp(tile, element_type(form)))

    def store(self, value: SSAValue, tile: SSAValue) -> None:
        """Write elements through a tile."""
        self.put(tiles.StoreOp(value, tile))

    def empty(self, element: Attribute, shape: Sequence[int]) -> SSAValue:
        """Return a tensor without contents, as the destination of an op."""
        return self.add(tensor.EmptyOp([], tensor_of(element, shape)))

    def filled(self, value: SSAValue, element: Attribute, shape: Sequence[int]) -> SSAValue:
        """Return a tensor of one value."""
        return self.add(linalg.FillOp([value], [self.empty(element, shape)]))

    def broadcast(self, value: SSAValue, present: Sequence[int], shape: Sequence[int]) -> SSAValue:
        """Return a tensor repeated along the dimensions it lacks; `present` are its own, in order."""
        element = element_of(value)
        if len(present) == len(shape):
            return value
        if not present:
            scalar = self.add(tensor.ExtractOp(value, [self.index(0)], element))
            return self.filled(scalar, element, shape)
        missing = DenseArrayBase.from_list(i64, [d for d in range(len(shape)) if d not in present])
        return self.add(linalg.BroadcastOp(value, self.empty(element, shape), missing))

    def widened(self, value: SSAValue) -> SSAValue:
        """Return a tensor in single precision."""
        if element_of(value) == f32:
            return value
        return self.add(arith.ExtFOp(value, tensor_of(f32, shape_of(value))))

    def narrowed(self, value: SSAValue, element: Attribute) -> SSAValue:
        """Return a tensor rounded to an element type."""
        if element_of(value) == element:
            return value
        return self.add(arith.TruncFOp(value, tensor_of(element, shape_of(value))))

    def block_ops(self) -> list[Operation]:
        """Return all written ops, in order."""
        return [*self.heads, *self.ops]


@dataclass
class OpenLoop:
    """A loop being written: its place, its carried values, and its results."""

    step: SSAValue
    carried: list[SSAValue]
    results: list[SSAValue] = field(default_factory=list[SSAValue])
