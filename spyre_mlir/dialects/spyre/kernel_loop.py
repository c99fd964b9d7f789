"""`spyre.kernel.tile`: the part of a device tensor that one trip of a loop works on, or that the host chooses.

A tile is the same memory: the same layout, a smaller extent, and a start that the induction variable of an `scf.for`
moves, or a number that the host knows when it launches the kernels (`spyre.kernel.block_number`). Its type is the type
of the whole tensor with fewer elements, so the strides stay those of the whole.

Decision: docs/decisions/0035-a-tile-is-a-view-in-a-loop.md
Decision: docs/decisions/0139-the-host-says-where-a-block-starts.md
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import I64, IndexType, IntegerAttr, i64
from xdsl.ir import Attribute, Block, SSAValue, Use
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.dialects.ir.canonicalization import CanonicalPatterns
from spyre_mlir.dialects.spyre.attributes import DeviceTensor, DeviceTensorType
from spyre_mlir.dialects.spyre.kernel_memory import LaunchOp
from spyre_mlir.dialects.spyre.kernel_op import KernelOp, device_tensor
from spyre_mlir.dialects.spyre.kernel_view import ViewOp
from spyre_mlir.dialects.spyre.loop_blocks import ENTRY_FORMAT, THE_ENTRY, EntryOp, NamedEntry
from spyre_mlir.dialects.spyre.static_loop import LoopBounds, loop_bounds, loop_of
from spyre_mlir.hw.spec import STICK_BYTES
from spyre_mlir.hw.sticks import round_up


@irdl_op_definition
class BlockNumberOp(EntryOp):
    """The number of the block that holds an entry, whose position the host knows.

    ``%b = spyre.kernel.block_number of %position, blocks of 64 in 4096 : tensor<1xi64>``

    Constraints:
        C1: `position` is one integer of the host, or has one with this `number`; when the program runs, that is at
            least 0 and less than `extent`.
        C2: blocks of `size` divide `extent`.

    With ``plus 1``, `position` + 1 is meant; with ``from_end``, `extent` is added to what is negative. With ``per 64``,
    positions count 64 places of each of `extent` entries, and with ``run 64``, this one and those behind it are the
    first 64 places of the entry, in order.
    """

    name = "spyre.kernel.block_number"

    size = prop_def(IntegerAttr[I64])
    extent = prop_def(IntegerAttr[I64])
    result = result_def(IndexType)

    traits = traits_def(Pure())
    assembly_format = (
        f"`of` $position {ENTRY_FORMAT} `,` `blocks` `of` $size `in` $extent attr-dict `:` type($position)"
    )

    def __init__(self, position: SSAValue, size: int, extent: int, named: NamedEntry = THE_ENTRY) -> None:
        """The number of the block of `size` entries, of `extent` in all, around the one that is named."""
        properties: dict[str, Attribute] = {"size": IntegerAttr(size, i64), "extent": IntegerAttr(extent, i64)}
        properties |= named.properties()
        super().__init__(operands=[position], properties=properties, result_types=[IndexType()])

    @property
    def bounds(self) -> LoopBounds:
        """The numbers that there are."""
        return LoopBounds(0, self.extent.value.data // self.size.value.data, 1)

    def verify_(self) -> None:
        """Checks C1 and C2."""
        size, extent = self.size.value.data, self.extent.value.data
        if size < 1 or extent < size or extent % size:
            raise VerifyException(f"blocks of {size} do not divide {extent} entries")
        NamedEntry.of(self).check(self.position)


@irdl_op_definition
class TileOp(IRDLOperation):
    """A view of a device tensor that starts at element `index * step` of dimension `dim`.

    ``%p = spyre.kernel.tile %t dim 0 at %i * 2048 : !t to !p``, or ``at %i * -1 from 63``: at element 63 in trip 0, and
    one before with every trip.

    Constraints:
        C1: `index` is the induction variable of a loop around the op, with constant bounds, or a block's number.
        C2: the tensor is in HBM; what is in LX does not advance.
        C3: the tile's type is the tensor's, reserved extents included; only the extent of `dim` is smaller.
        C4: in the lanes, the start of every trip and the tile's extent are whole sticks.
        C5: no trip leaves the tensor.
        C6: kernel ops and further tiles use it, and they stay inside; launches, if the host says where it starts.
    """

    name = "spyre.kernel.tile"

    source = operand_def(DeviceTensorType)
    index = operand_def(IndexType)
    dim = prop_def(IntegerAttr[I64])
    step = prop_def(IntegerAttr[I64])
    first = opt_prop_def(IntegerAttr[I64])
    result = result_def(DeviceTensorType)

    traits = traits_def(Pure(), CanonicalPatterns("spyre_mlir.dialects.spyre.canonicalization.kernel"))
    assembly_format = (
        "$source `dim` $dim `at` $index `*` $step (`from` $first^)? attr-dict `:` type($source) `to` type($result)"
    )

    def __init__(
        self, source: SSAValue, dim: int, index: SSAValue, step: int, result: Attribute, *, first: int = 0
    ) -> None:
        """A tile of `source` at element `first` of `dim`, `step` elements further for every count of `index`."""
        properties: dict[str, Attribute] = {"dim": IntegerAttr(dim, i64), "step": IntegerAttr(step, i64)}
        if first:
            properties["first"] = IntegerAttr(first, i64)
        super().__init__(operands=[source, index], properties=properties, result_types=[result])

    @property
    def step_bytes(self) -> int:
        """Bytes from the start of the tile to its start when the induction variable is 1 larger."""
        return self._bytes(self.step.value.data)

    @property
    def first_bytes(self) -> int:
        """Bytes from the start of the tensor to that of the tile where the induction variable is 0."""
        return self._bytes(self.first_element)

    @property
    def first_element(self) -> int:
        """The element of `dim` that it starts at where the induction variable is 0."""
        return 0 if self.first is None else self.first.value.data

    def _bytes(self, elements: int) -> int:
        """The bytes from an element of `dim` to one that is this much further."""
        tensor, dim = device_tensor(self.source), self.dim.value.data
        sticks = elements // tensor.lanes if dim == tensor.layout.stick else elements
        return sticks * tensor.layout.strides(tensor.lanes)[dim] * STICK_BYTES

    def window(self) -> tuple[int, ...]:
        """Elements of every dimension in the tile: whole sticks in the lanes, all of an uncut dimension."""
        tensor, dim, source = device_tensor(self.result), self.dim.value.data, self.source.owner
        whole = source.window() if isinstance(source, TileOp) else tensor.layout.extents
        own = round_up(tensor.shape[dim], tensor.lanes if dim == tensor.layout.stick else 1)
        return (*whole[:dim], own, *whole[dim + 1 :])

    def compact(self) -> DeviceTensor:
        """Return a tensor of only the tile's elements."""
        tensor = device_tensor(self.result)
        return replace(tensor, layout=replace(tensor.layout, extents=self.window()))

    def verify_(self) -> None:
        """Checks C1 to C6."""
        whole, tile, dim = device_tensor(self.source), device_tensor(self.result), self.dim.value.data
        if whole.space != "hbm":
            raise VerifyException("a tile of a tensor in LX cannot advance from trip to trip; try hbm for the tensor")
        if not 0 <= dim < len(whole.shape):
            raise VerifyException(f"dimension {dim} of a tensor of rank {len(whole.shape)}")
        wanted = (*whole.shape[:dim], min(tile.shape[dim : dim + 1], default=0), *whole.shape[dim + 1 :])
        if tile != replace(whole, shape=wanted):
            raise VerifyException(
                f"the tile is {self.result.type}, expected {DeviceTensorType(replace(whole, shape=wanted))}: a tile "
                f"keeps format, layout and reserved extents of the tensor, and is smaller in dimension {dim} only"
            )
        self._verify_trips(whole.shape[dim], whole.lanes if dim == whole.layout.stick else 1)
        for use in self.result.uses:
            self._verify_use(use)

    def _verify_trips(self, have: int, unit: int) -> None:
        """Checks C1, C4 and C5; `unit` elements stay together."""
        dim, step, extent = self.dim.value.data, self.step.value.data, device_tensor(self.result).shape[self._dim]
        bounds = self._bounds()
        begin = self.first_element
        first, last = sorted((begin + bounds.values[0] * step, begin + bounds.values[-1] * step))
        if (begin + bounds.lower * step) % unit or (bounds.step * step) % unit or extent % unit:
            raise VerifyException(
                f"tiles of {extent} elements, {bounds.step * step} apart, cut the sticks of {unit} of dimension {dim}; "
                f"try multiples of {unit}"
            )
        if first < 0 or last + extent > have:
            raise VerifyException(
                f"the tiles run over elements {first} to {last + extent} of dimension {dim}, which has {have}; "
                "try fewer trips, or a smaller step"
            )

    def _bounds(self) -> LoopBounds:
        """The values of the index."""
        if isinstance(self.index.owner, BlockNumberOp):
            return self.index.owner.bounds
        loop = loop_of(self.index)
        if loop is None or not loop.is_ancestor(self):
            raise VerifyException(
                "the start of a tile is a multiple of the induction variable of a loop around it, or of the number "
                "of a block"
            )
        return loop_bounds(loop)

    @property
    def is_placed_by_host(self) -> bool:
        """Return whether the host says where it starts."""
        return isinstance(self.index.owner, BlockNumberOp)

    @property
    def _dim(self) -> int:
        return self.dim.value.data

    def _verify_use(self, use: Use) -> None:
        """Checks C6."""
        op = use.operation
        if isinstance(op, TileOp) or (isinstance(op, LaunchOp) and self.is_placed_by_host):
            return
        if not isinstance(op, KernelOp):
            raise VerifyException(f"{op.name} cannot use a tile; try the whole tensor")
        window, padded = self.window(), op.padded_extents()
        for dim, expr in enumerate(op.maps.data[use.index].data[: len(window)]):
            if expr.last(padded) >= window[dim]:
                raise VerifyException(
                    f"{op.function_name} walks index {expr} up to {expr.last(padded)}, the tile has {window[dim]} "
                    f"elements in dimension {dim}"
                )


@dataclass(frozen=True)
class ByteOrigin:
    """Location of a device tensor's bytes.

    Attributes:
        buffer: the tensor itself, or the whole one that it is a tile or a view of.
        steps: per tile on the way, the outermost first: an induction variable and the bytes it moves the start by.
        first: bytes from the start of the buffer where all induction variables are 0.
    """

    buffer: SSAValue
    steps: tuple[tuple[SSAValue, int], ...] = ()
    first: int = 0


def buffer_behind(value: SSAValue) -> SSAValue:
    """Return the buffer behind a device tensor: itself, or the one that it is a tile or a view of."""
    while isinstance(owner := value.owner, TileOp | ViewOp):
        value = owner.source
    return value


def view_behind(value: SSAValue) -> SSAValue | None:
    """Return the view that a device tensor is, or is a tile of; None if kernels see the buffer as it was made."""
    while isinstance(owner := value.owner, TileOp):
        value = owner.source
    return value if isinstance(owner, ViewOp) else None


def launch_origin(value: SSAValue) -> ByteOrigin:
    """Return the value that a launch is handed for a device tensor, and the offsets of the tensor's start in it.

    The host works out the start of a tile that it places; a launch is handed the tile.
    """
    steps, first = list[tuple[SSAValue, int]](), 0
    while isinstance(owner := value.owner, TileOp | ViewOp) and not is_placed_by_host(value):
        if isinstance(owner, TileOp):
            steps.insert(0, (owner.index, owner.step_bytes))
            first += owner.first_bytes
        value = owner.source
    return ByteOrigin(value, tuple(steps), first)


def is_placed_by_host(value: SSAValue) -> bool:
    """Return whether a device tensor is a tile whose start the host works out."""
    return isinstance(value.owner, TileOp) and value.owner.is_placed_by_host


def launch_arguments(block: Block) -> list[SSAValue]:
    """Return the values that a launch of a region's function is handed: its device tensors, then blocks of some.

    A tensor of which kernels use blocks alone is not handed over.
    """
    tensors = [a for a in block.args if isinstance(a.type, DeviceTensorType)]
    blocks = [op.result for op in block.ops if isinstance(op, TileOp) and op.is_placed_by_host]
    return [*(a for a in tensors if not a.uses or not all(map(_is_by_block, a.uses))), *blocks]


def _is_by_block(use: Use) -> bool:
    return isinstance(use.operation, TileOp) and use.operation.is_placed_by_host


def uses_with_tiles(buffer: SSAValue) -> Iterator[Use]:
    """Return the uses of a buffer, of its tiles and of its views, except by tiles and views."""
    for use in buffer.uses:
        if isinstance(use.operation, TileOp | ViewOp):
            yield from uses_with_tiles(use.operation.result)
        else:
            yield use


def is_written(use: Use) -> bool:
    """Return whether a use is the output of a kernel op."""
    return isinstance(use.operation, KernelOp) and use.index == len(use.operation.inputs)


__all__ = [
    "BlockNumberOp",
    "ByteOrigin",
    "TileOp",
    "buffer_behind",
    "is_placed_by_host",
    "is_written",
    "launch_arguments",
    "launch_origin",
    "uses_with_tiles",
    "view_behind",
]
