"""Work of one SuperDSC on one core, or on all of them together, with all that is known of it before any element is."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor, IndirectKind
from spyre_mlir.machine.arrays import Array
from spyre_mlir.machine.hardware_functions import Contraction, Meaning, Movement, Pointwise
from spyre_mlir.machine.memory.frames import Frame
from spyre_mlir.machine.memory.operand_views import ByteAccess
from spyre_mlir.machine.memory.strided_access import FramedAccess
from spyre_mlir.machine.superdsc.constants import decode_constant
from spyre_mlir.ops.function_facts import LaneOrder


@dataclass(frozen=True)
class Tile:
    """The part of the iteration space of one evaluation: one core's, or all.

    Args:
        cores: the cores it stands for.
        origin: first global index per iteration dim.
        accesses: one per operand.
    """

    cores: tuple[int, ...]
    origin: tuple[int, ...]
    accesses: tuple[ByteAccess, ...]

    @cached_property
    def frame(self) -> Frame:
        """The axes of its operands."""
        return Frame.of(self.accesses)

    @cached_property
    def framed(self) -> tuple[FramedAccess, ...]:
        """The operands along the axes of the frame."""
        return tuple(FramedAccess.of(access, self.frame) for access in self.accesses)

    @property
    def plain(self) -> Tile:
        """Return the same tile with one axis per iteration dim."""
        return self if self.frame.dense else PlainTile(self.cores, self.origin, self.accesses)


@dataclass(frozen=True)
class PlainTile(Tile):
    """A tile whose operands have one axis per iteration dim."""

    @cached_property
    def frame(self) -> Frame:
        """The axes of its operands."""
        return Frame.plain(self.accesses)


@dataclass(frozen=True)
class Contracted:
    """How a contraction becomes one batched matrix product.

    Attributes:
        summed: the iteration dims that its result lacks.
        batch: axes of the frame that both operands and the result have; `rows`, `columns` and `inner` are those of the
            first operand, of the second, and of both alone.
        shape: of the product, along all of these axes.
        order: brings it back to the order of the frame.
    """

    summed: list[int]
    batch: list[int]
    rows: list[int]
    columns: list[int]
    inner: list[int]
    shape: list[int]
    order: list[int]


@dataclass
class Room:
    """Memory of the host that copies may take, of all programs together.

    Attributes:
        left: bytes.
    """

    left: int

    def keep(self, matrix: Array) -> bool:
        """Take the room for a copy, until it is gone; return False if there is too little."""
        if matrix.nbytes > self.left:
            return False
        self.left -= matrix.nbytes
        weakref.finalize(matrix, self._give, matrix.nbytes).atexit = False
        return True

    def _give(self, count: int) -> None:
        self.left += count


ROOM = Room(1 << 30)


@dataclass(frozen=True, eq=False)
class KeptMatrix:
    """An operand of a contraction, copied to the order in which it is multiplied.

    Attributes:
        source: the contents of memory it was copied from, which nothing writes to.
        matrix: the copy.
    """

    source: weakref.ref[Array]
    matrix: Array

    @staticmethod
    def of(cells: Array, matrix: Array) -> KeptMatrix:
        """Return the copy for the contents of memory it was made from."""
        matrix.setflags(write=False)
        return KeptMatrix(weakref.ref(cells), matrix)

    def fits(self, cells: Array, values: Array) -> bool:
        """Return whether it is a copy of these contents, and of numbers of the type that is asked for."""
        return self.source() is cells and self.matrix.dtype == values.dtype


@dataclass(frozen=True, eq=False)
class TileWork:
    """A function on one tile.

    Args:
        view: the file, with sizes bound.
        meaning: of its function.
        tile: where.
    """

    view: Descriptor
    meaning: Meaning
    tile: Tile

    @cached_property
    def matrices(self) -> dict[int, KeptMatrix]:
        """The operands that a contraction need not copy again, by number."""
        return {}

    @cached_property
    def copied(self) -> dict[int, int]:
        """How often the operands of a contraction were copied from memory that nothing writes to, by number."""
        return {}

    @cached_property
    def packed(self) -> bool:
        """Return whether it is a contraction whose first operand lies in pairs of lanes."""
        return isinstance(self.meaning, Contraction) and self.meaning.packed

    @cached_property
    def constants(self) -> Mapping[str, float]:
        """The values of its constants by name."""
        return {constant.name: decode_constant(constant) for constant in self.view.constants}

    @cached_property
    def gathers(self) -> bool:
        """Return whether indices select the elements it reads."""
        kinds = [operand.indirect.kind for operand in self.view.operands if operand.indirect is not None]
        return IndirectKind.VALUE in kinds

    @cached_property
    def moves(self) -> bool:
        """Return whether it copies elements in the order they have."""
        return isinstance(self.meaning, Movement) and self.meaning.lanes is LaneOrder.KEPT

    @cached_property
    def copies(self) -> bool:
        """Return whether its results are elements of memory in the format of the result."""
        formats = {access.format for access in self.tile.accesses}
        unmasked = self.view.mask_constant < 0 or all(dim.valid is None for dim in self.view.dims)
        return isinstance(self.meaning, Movement) and not self.meaning.rounded and len(formats) == 1 and unmasked

    @cached_property
    def inputs(self) -> tuple[int, ...]:
        """Return the operands that an element-wise function reads."""
        return (0,) if self.moves else tuple(range(len(self.tile.accesses) - 1))

    @cached_property
    def streams(self) -> bool:
        """Return whether it can run from memory to memory, part by part, if all that it reads was written."""
        view, tile = self.view, self.tile
        if view.mask_constant >= 0 or any(dim.valid is not None for dim in view.dims) or tile.frame.dense:
            return False
        if not (self.moves or isinstance(self.meaning, Pointwise)):
            return False
        if any(operand.indirect is not None for operand in view.operands):
            return False
        shapes = [tile.accesses[number].shape for number in self.inputs]
        sizes = (max(along) for along in zip(*shapes, strict=True))
        return all(n in (1, m) for n, m in zip(sizes, tile.accesses[-1].shape, strict=True))

    @cached_property
    def masked(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """Per operand, the iteration dims with padding that counts as the mask constant, and where it begins."""
        view, origin = self.view, self.tile.origin
        places = [
            (place, dim.label, max(0, dim.valid - origin[place]))
            for place, dim in enumerate(view.dims)
            if dim.valid is not None and view.mask_constant >= 0
        ]
        return tuple(
            tuple((place, first) for place, label, first in places if label in operand.order)
            for operand in view.operands
        )

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Extents of the result along the axes of the frame."""
        tile = self.tile
        pairs = zip(tile.accesses[-1].shape, tile.frame.counts, strict=True)
        return tuple(n for size, counts in pairs for n in (counts if size != 1 else [1] * len(counts)))

    @cached_property
    def summed(self) -> list[int]:
        """The iteration dims that the result lacks."""
        return [place for place, dim in enumerate(self.view.dims) if dim.label not in self.view.output.order]

    @cached_property
    def folded(self) -> list[int]:
        """The axes of the frame that the result lacks."""
        return self.tile.frame.axes_of(self.summed)

    @cached_property
    def contracted(self) -> Contracted:
        """The axes of a contraction, sorted by which operands have them."""
        frame, kept = self.tile.frame, set(self.view.output.order)
        left, right = (set(operand.order) for operand in self.view.operands[:2])
        places: dict[str, list[int]] = {name: [] for name in ("batch", "rows", "columns")}
        for place, dim in enumerate(self.view.dims):
            if dim.label in kept:
                both = dim.label in left and dim.label in right
                places["batch" if both else "rows" if dim.label in left else "columns"].append(place)
        batch, rows, columns = (frame.axes_of(own) for own in places.values())
        order = [*batch, *rows, *columns, *self.folded]
        counts = [count for own in frame.counts for count in own]
        shape = [1 if axis in self.folded else counts[axis] for axis in order]
        back = [int(n) for n in np.argsort(order)]
        return Contracted(self.summed, batch, rows, columns, self.folded, shape, back)


__all__ = ["ROOM", "Contracted", "KeptMatrix", "PlainTile", "Room", "Tile", "TileWork"]
