"""Device buffers during layout planning, and the kernel steps that use them.

Decision: docs/decisions/0092-padding-has-a-bound.md
Decision: docs/decisions/0139-the-host-says-where-a-block-starts.md
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from math import lcm

from typing_extensions import override
from xdsl.dialects.builtin import BFloat16Type, Float8E4M3FNType, Float16Type, Float32Type, IndexType, IntegerType
from xdsl.ir import Attribute, Operation, SSAValue

from spyre_mlir.dialects.ir.control import ControlOp
from spyre_mlir.dialects.spyre.attributes import DeviceTensor, DeviceTensorType, IterDim
from spyre_mlir.dialects.spyre.host import LoopHostOp
from spyre_mlir.dialects.spyre.kernel_loop import BlockNumberOp, TileOp
from spyre_mlir.dialects.spyre.kernel_view import ViewOp
from spyre_mlir.dialects.spyre.loop_blocks import THE_ENTRY, NamedEntry
from spyre_mlir.errors import LoweringError, UnsupportedError
from spyre_mlir.hw import formats
from spyre_mlir.hw.arrangement import PACKED, STANDARD, WIDENED, block
from spyre_mlir.hw.legality import multiples
from spyre_mlir.hw.moves import HostStep
from spyre_mlir.hw.sticks import UNIT, IndexMap, LinearExpr, StickLayout, round_up


@lru_cache(maxsize=256)
def stored_format(element: Attribute, *, keep_float32: bool = False) -> str:
    """Return the device format of an element type; float32 stays float32 if requested.

    Raises:
        UnsupportedError: the device has no such numbers.
    """
    match element:
        case Float32Type() if keep_float32:
            return formats.FP32.name
        case Float8E4M3FNType():
            return formats.DL16.name  # has them all; a conversion to them rounds
        case Float16Type() | BFloat16Type() | Float32Type():
            return formats.DL16.name
        case IntegerType() if element.width.data == 1:
            return formats.DL16.name
        case IntegerType():
            return formats.INDEX.name
        case _:
            raise UnsupportedError(
                f"the device has no form for elements of type {element}", hint="convert the model to float32 or float16"
            )


def elements_of(shape: Sequence[int], dim: int | None = None, extent: int = 0) -> tuple[tuple[IterDim, ...], IndexMap]:
    """Return loops over all elements of a tensor, `extent` of them along `dim` if that is one, and their map."""
    dims = [IterDim(f"d{d}", extent if d == dim else e) for d, e in enumerate(shape)]
    index = tuple(LinearExpr.of(d.name) if d.extent > 1 else LinearExpr() for d in dims)
    return tuple(d for d in dims if d.extent > 1), index


# How often the whole sticks of a dimension may go into what a layout reserves along it.
MOST_PADDING = 2


# Fields of a buffer that another one does not share that lies alike.
_NOT_ALIKE = frozenset({"host", "filled", "argument", "fixed", "ordered", "steps"})


@dataclass(eq=False)
class PlannedBuffer:
    """One planned device tensor: its layout may still gain padding.

    Attributes:
        host: the host tensor it is filled from, if any.
        constant: the number or pattern it is filled with, if any.
        zero_padding: whether everything behind the logical extents is known to be 0.
        filled: dimensions whose padding has been overwritten by the program, and with what.
        saturate: whether the host sends numbers beyond DL16's integers as the next number beyond these.
        elements: the types that the model converts integers to on the way, one after the other, of those that may be
            beyond the device's integers.
        rows: the rows of the table that it indexes, if negative indices count from the end of it.
        argument: the argument of a region's function that the device has already, if it is one.
        moves: what the host does to its tensor before it lays it out.
        fixed: whether it lies as a region's function takes it, so that its layout may not change any more.
        ordered: whether the text of the program says the order of its dimensions.
    """

    shape: tuple[int, ...]
    format: str
    layout: StickLayout
    host: SSAValue | None = None
    constant: Attribute | None = None
    zero_padding: bool = False
    filled: dict[int, float] = field(default_factory=dict[int, float])
    saturate: bool = False
    elements: tuple[Attribute, ...] = ()
    rows: int | None = None
    argument: SSAValue | None = None
    moves: tuple[HostStep, ...] = ()
    fixed: bool = False
    ordered: bool = False
    steps: dict[int, int] = field(default_factory=dict[int, int])

    def alike(self, host: SSAValue | None) -> PlannedBuffer:
        """Return a buffer of another tensor that lies, and is filled by the host, as this one does.

        What the program writes behind its elements, and which argument it is, is its own.

        Args:
            host: the host tensor that fills the new one, if any.
        """
        own = {f.name: getattr(self, f.name) for f in fields(PlannedBuffer) if f.name not in _NOT_ALIKE}
        return PlannedBuffer(**own, host=host, fixed=True)

    @property
    def lanes(self) -> int:
        """Elements per stick."""
        return formats.FORMATS[self.format].elements_per_stick()

    @property
    def arrangement(self) -> str:
        """Order of the elements in its sticks; see `spyre_mlir.transforms.loop_to_kernel.layout_planner`."""
        kept = {formats.FP32.name: WIDENED, formats.INT32.name: WIDENED, formats.FP8.name: PACKED}
        return kept.get(self.format, STANDARD) if self.layout.stick != UNIT else STANDARD

    @property
    def block(self) -> int:
        """Elements along the stick dimension that stay together."""
        return block(self.lanes, self.arrangement)

    @property
    def sticks(self) -> int:
        """Sticks it takes now."""
        return self.layout.sticks(self.lanes)

    def behind(self, dim: int) -> float | None:
        """Return the number that fills the padding behind a dimension, if it is known."""
        return self.filled.get(dim, 0.0 if self.zero_padding else None)

    def unit(self, dim: int) -> int:
        """Return the multiple to which the layout rounds up `dim`."""
        return lcm(self.steps.get(dim, 1), self.block if dim == self.layout.stick else 1)

    def reserved(self, dim: int, multiple: int, least: int = 0) -> int:
        """Return the extent of `dim` with multiples of `multiple`, and `least` elements, also requested."""
        return round_up(max(self.layout.extents[dim], least), lcm(self.unit(dim), multiple))

    def has_room(self, dim: int, multiple: int, least: int = 0) -> bool:
        """Return whether that is at most a few times the tensor; coprime demands on one layout reserve far more."""
        if self.fixed:
            return self.reserved(dim, multiple, least) == self.layout.extents[dim]
        return self.reserved(dim, multiple, least) <= MOST_PADDING * round_up(self.shape[dim], self.lanes)

    def pad(self, dim: int, multiple: int, least: int = 0) -> None:
        """Reserve whole multiples of `multiple` elements along `dim`, at least `least`, on top of earlier demands.

        Raises:
            LoweringError: no layout of a sane size meets all demands.
        """
        extent = self.reserved(dim, multiple, least)
        if not self.has_room(dim, multiple, least):
            raise LoweringError(
                f"dimension {dim} of a tensor of shape {list(self.shape)} would take {extent} elements on the device: "
                f"one reader wants multiples of {multiple}, others of {self.unit(dim)}",
                hint="give one of them a copy: .clone() before it",
            )
        self.steps[dim] = lcm(self.steps.get(dim, 1), multiple)
        self.layout = self.layout.reserving(dim, extent)

    def reserve(self, dim: int, extent: int) -> None:
        """Reserve at least `extent` elements along `dim`, in the multiples of earlier demands."""
        wanted = max(self.layout.extents[dim], round_up(extent, self.steps.get(dim, 1)))
        extents = tuple(wanted if d == dim else e for d, e in enumerate(self.layout.extents))
        self.layout = replace(self.layout, extents=extents)

    def reserve_units(self, count: int) -> None:
        """Reserve `count` copies of the tensor, itself the first: the input of a restickify to sparse."""
        if UNIT not in self.layout.order:
            self.layout = replace(self.layout, order=(UNIT, *self.layout.order), unit_extent=count)

    def suit(self, index: IndexMap, found: int | None = None) -> None:
        """Pad so that the strides of an index map nest; `found`, too, is traversed by index."""
        for dim, multiple in multiples(index, self.layout, found).items():
            self.pad(dim, multiple)

    @property
    def type(self) -> DeviceTensorType:
        """Return the type of the finished buffer."""
        return DeviceTensorType(DeviceTensor(self.shape, self.format, self.layout, arrangement=self.arrangement))

    def fix(self, layout: StickLayout) -> bool:
        """Settle on a layout if it only reserves more than this one; return whether it does."""
        own = self.layout
        alike = (own.order, own.stick, own.unit_extent) == (layout.order, layout.stick, layout.unit_extent)
        grows = all(
            wanted == extent or (not self.fixed and wanted > extent and wanted % self.unit(dim) == 0)
            for dim, (extent, wanted) in enumerate(zip(own.extents, layout.extents, strict=True))
        )
        if alike and grows:
            self.layout, self.fixed = layout, True
        return alike and grows


class BlockBuffer(PlannedBuffer):
    """A block of a planned buffer: what it reserves, the whole reserves."""

    def __init__(
        self,
        whole: PlannedBuffer,
        dim: int,
        size: int,
        position: SSAValue,
        named: NamedEntry = THE_ENTRY,
        *,
        outermost: bool = False,
    ) -> None:
        """The block of `size` entries of `dim` around the one that is named.

        If `position` is the number of a trip, it is the entry of that number, or `from_end` as many before `offset`.

        If `outermost`, the whole is laid out block by block, unless blocks divide its lanes.
        """
        if outermost and dim != whole.layout.stick:
            whole.layout = whole.layout.with_outermost(dim)
        self.whole, self.dim, self.position, self.named = whole, dim, position, named
        shape = (*whole.shape[:dim], size, *whole.shape[dim + 1 :])
        super().__init__(shape, whole.format, whole.layout)

    @property
    def layout(self) -> StickLayout:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The layout of the whole."""
        return self.whole.layout

    @layout.setter
    def layout(self, layout: StickLayout) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        self.whole.layout = layout

    @override
    def unit(self, dim: int) -> int:
        return self.whole.unit(dim)

    @override
    def has_room(self, dim: int, multiple: int, least: int = 0) -> bool:
        return self.whole.has_room(dim, multiple, least)

    @override
    def pad(self, dim: int, multiple: int, least: int = 0) -> None:
        self.whole.pad(dim, multiple, least)

    @override
    def reserve(self, dim: int, extent: int) -> None:
        self.whole.reserve(dim, extent)

    @property
    @override
    def type(self) -> DeviceTensorType:
        return DeviceTensorType(replace(self.whole.type.data, shape=self.shape))

    @property
    def is_entry(self) -> bool:
        """Return whether its position is the number of a trip: it is the entry of that number."""
        return isinstance(self.position.type, IndexType)

    def definition(self, whole: SSAValue, position: SSAValue) -> tuple[Operation, ...]:
        """Return the ops that make it of the whole tensor."""
        size = self.shape[self.dim]
        if self.is_entry:
            step = -1 if self.named.from_end else 1
            return (TileOp(whole, self.dim, position, step, self.type, first=self.named.offset),)
        extent = self.whole.shape[self.dim]
        number = BlockNumberOp(position, size, extent, self.named)
        return number, TileOp(whole, self.dim, number.result, size, self.type)


class PartsBuffer(PlannedBuffer):
    """A planned buffer whose rows are taken in parts, as a tensor of so many times the rows: the same sticks.

    The whole reserves no more from then on, as its parts would lie apart.
    """

    def __init__(self, whole: PlannedBuffer, axis: int, dim: int, count: int) -> None:
        """The rows along `axis`, each in `count` parts along `dim`, which lies next to it in memory."""
        self.whole, self.dim, self.count = whole, dim, count
        whole.fixed = True
        layout = whole.layout

        def parted(extents: Sequence[int]) -> tuple[int, ...]:
            return tuple(e * count if d == axis else e // count if d == dim else e for d, e in enumerate(extents))

        layout = replace(layout, extents=parted(layout.extents))
        super().__init__(parted(whole.shape), whole.format, layout, fixed=True)

    def definition(self, whole: SSAValue) -> Operation:
        """Return the op that makes it of the whole tensor."""
        return ViewOp(whole, self.type)


Use = tuple[PlannedBuffer, IndexMap]


@dataclass(frozen=True)
class Define:
    """The point where a buffer is created."""

    buffer: PlannedBuffer
    origin: Operation | None


@dataclass(frozen=True)
class PlannedKernel:
    """One planned kernel op.

    Attributes:
        function: the hardware function, `restickify` or `gather`.
        space: its loops.
        inputs, output: buffers with index maps.
        origin: the loop-level op it comes from.
        axis: the indexed dimension of a gather.
        integers: whether its results are integers whose bounds are not known.
        constants: of the hardware function, by their names in its file.
        element: the element type of the model whose numbers its results are, where exact numerics must know it.
    """

    function: str
    space: tuple[IterDim, ...]
    inputs: Sequence[Use]
    output: Use
    origin: Operation | None
    axis: int | None = None
    integers: bool = False
    constants: dict[str, float] = field(default_factory=dict[str, float])
    element: Attribute | None = None


@dataclass(frozen=True)
class PlannedCall:
    """One planned call of a region's function.

    Attributes:
        origin: the loop-level op.
        callee: name of the function.
        buffers: the device tensors that the function takes, results included.
        positions: integers of the host that say where blocks of these start; it takes them last.
    """

    origin: Operation
    callee: str
    buffers: Sequence[PlannedBuffer]
    positions: Sequence[SSAValue] = ()


@dataclass(frozen=True)
class PlannedHostOp:
    """One planned host operator, or control flow.

    Attributes:
        origin: the loop-level op.
        buffers: per operand the buffer to bring back, or None for a tensor that is on the host.
    """

    origin: LoopHostOp | ControlOp
    buffers: Sequence[PlannedBuffer | None]


Item = Define | PlannedKernel | PlannedCall | PlannedHostOp
