"""The ktdp memory ops: views, tiles, loads and stores of one core."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import AffineMapAttr, AffineSetAttr
from xdsl.ir import Operation, SSAValue

from spyre_mlir.dialects.ktdp.affine import bounds_of, permutation
from spyre_mlir.dialects.ktdp.indirect import ConstructIndirectAccessTileOp
from spyre_mlir.dialects.ktdp.tiles import ConstructAccessTileOp, LoadOp, StoreOp
from spyre_mlir.dialects.ktdp.views import (
    ConstructDistributedMemoryViewOp,
    ConstructMemoryViewOp,
    view_type,
)
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.machine.faults import FaultKind, fault
from spyre_mlir.machine.ktdp.access import (
    AnyTile,
    AnyView,
    BoxTile,
    Distributed,
    MemoryView,
    PointTile,
    TilePiece,
    allowed,
    axes,
    evaluate,
    pieces,
)
from spyre_mlir.machine.ktdp.regions import Scattered, TrackedRegion
from spyre_mlir.machine.ktdp.state import CoreState, Points
from spyre_mlir.machine.ktdp.values import Array, Data, Mask, dtype_of, shape_of


def points_of(points: AffineSetAttr, order: AffineMapAttr) -> Points:
    """The offsets of a tile op.

    Raises:
        UnsupportedError: the order of the points is no permutation.
    """
    box, places = bounds_of(points.data), permutation(order.data)
    if places is None:
        raise UnsupportedError(f"the order {order} is no permutation")
    return Points(box.extents, places, allowed(box.rules, axes(box.extents), box.extents))


def view(op: ConstructMemoryViewOp, core: CoreState) -> MemoryView:
    """The view an op makes.

    Raises:
        MachineFault: a size is not what the type says, or a view leaves the scratchpad.
    """
    kind = dtype_of(view_type(op.result).element_type)
    sizes = _numbers(op.mixed_sizes, core)
    for number, (size, extent) in enumerate(zip(sizes, view_type(op.result).get_shape(), strict=True)):
        if size < 1 or (extent >= 0 and size != extent):
            wanted = "at least 1" if extent < 0 else str(extent)
            raise fault(FaultKind.OUT_OF_BOUNDS, f"size {number} is {size}, not {wanted}", op, core=core.number)
    strides = tuple(stride * kind.itemsize for stride in _numbers(op.mixed_strides, core))
    symbols = [core.whole(value) for value in op.sizes]
    domain = bounds_of(op.coordinate_set.data, symbols)
    owner = op.memory_space.core if op.memory_space.is_local else None
    if op.memory_space.is_local and owner is None:
        owner = core.number
    if owner is not None and owner >= core.machine.cores:
        raise fault(FaultKind.OUT_OF_BOUNDS, f"core {owner} is not in the grid", op, core=core.number)
    masks = op.coordinate_set.data.num_symbols > 0
    made = MemoryView(core.whole(op.offset) * kind.itemsize, sizes, strides, kind, domain, owner, masks)
    if owner is not None:
        core.machine.scratchpads[owner].reserve(made.everything, kind, op)
    return made


def _numbers(values: Sequence[int | SSAValue], core: CoreState) -> tuple[int, ...]:
    return tuple(value if isinstance(value, int) else core.whole(value) for value in values)


def distributed(op: ConstructDistributedMemoryViewOp, parts: Sequence[AnyView]) -> Distributed:
    """The view of several parts."""
    flat = [part for one in parts for part in (one.parts if isinstance(one, Distributed) else (one,))]
    shape = view_type(op.result).get_shape()
    ends = [max(part.domain.high[place] for part in flat) + 1 for place in range(len(shape))]
    sizes = tuple(end if extent < 0 else extent for extent, end in zip(shape, ends, strict=True))
    return Distributed(tuple(flat), sizes)


def tile(op: ConstructAccessTileOp, core: CoreState) -> BoxTile:
    """Return the coordinates of a tile op."""
    known = core.machine.points.get(op)
    if known is None:
        known = core.machine.points[op] = points_of(op.access_tile_set, op.access_tile_order)
    start = [core.whole(value) for value in op.indices]
    if op.base_map is not None:
        start = [int(evaluate(expr, start, ())) for expr in op.base_map.data.results]
    source = core.values[op.view]
    mask = _inside(source, start, known) if isinstance(source, MemoryView) and source.masks else known.mask
    return BoxTile(source, tuple(start), known.extents, known.order, mask)


def _inside(source: MemoryView, start: Sequence[int], known: Points) -> Mask | None:
    """Return which offsets are valid in a view of run-time sizes: those before its end."""
    if all(at + n <= size for at, n, size in zip(start, known.extents, source.sizes, strict=True)):
        return known.mask
    mask = np.ones(known.extents, np.bool_) if known.mask is None else known.mask.copy()
    for axis, size in zip(axes(known.extents, start), source.sizes, strict=True):
        mask &= axis < size
    return mask


def indirect(op: ConstructIndirectAccessTileOp, core: CoreState) -> PointTile:
    """Return the coordinates that an op computes; indices are read now.

    Raises:
        MachineFault: an index view is left, or an index is not one of the view.
    """
    known = core.machine.points.get(op)
    if known is None:
        known = core.machine.points[op] = points_of(op.variables_space_set, op.variables_space_order)
    base: AnyView = core.values[op.view]
    if isinstance(base, Distributed):
        raise UnsupportedError("an indirect tile of a distributed view does not run", hint="gather from each part")
    variables, captured = axes(known.extents), [core.whole(value) for value in op.captured_variables]
    found: list[Array] = []
    for number, (index_view, subscript) in enumerate(op.subscripts):
        places = [np.asarray(evaluate(expr, variables, captured)) for expr in subscript.results]
        coordinates = places[0]
        if index_view is not None:
            coordinates = _indices(op, core.values[index_view], places, core)
        _require_coordinates(op, number, coordinates, base.sizes[number], known, core)
        found.append(coordinates)
    return PointTile(base, tuple(found), known.extents, known.order, known.mask)


def _indices(op: Operation, source: AnyView, places: Sequence[Array], core: CoreState) -> Array:
    if isinstance(source, Distributed):
        raise UnsupportedError("a distributed index view does not run")
    for number, (at, size) in enumerate(zip(places, source.sizes, strict=True)):
        if at.min() < 0 or at.max() >= size:
            message = f"index view: coordinates {at.min()} to {at.max()} along d{number} of {size}"
            raise fault(FaultKind.OUT_OF_BOUNDS, message, op, core=core.number)
    addresses = sum((at * stride for at, stride in zip(places, source.strides, strict=True)), np.int64(source.start))
    where = Scattered(np.asarray(addresses, np.int64))
    return _region(source, where, op, core).read(where, source.kind, op, core.number, core.clocks).astype(np.int64)


def _require_coordinates(
    op: Operation, number: int, coordinates: Array, size: int, known: Points, core: CoreState
) -> None:
    bad = (coordinates < 0) | (coordinates >= size)
    if known.mask is not None:
        bad = np.broadcast_to(bad, known.extents) & known.mask
    if bad.any():
        worst = int(np.broadcast_to(coordinates, bad.shape)[bad][0])
        message = f"index {worst} of dimension {number}, which has {size}"
        raise fault(FaultKind.INDEX_OUT_OF_RANGE, message, op, core=core.number)


def _region(source: MemoryView, where: Any, op: Operation, core: CoreState) -> TrackedRegion:
    if source.core is None:
        return core.machine.device.region(where, source.kind, op, core.number)
    return core.machine.scratchpads[source.core].region


def _read(piece: TilePiece, op: Operation, core: CoreState) -> Array:
    region = _region(piece.view, piece.where, op, core)
    return region.read(piece.where, piece.view.kind, op, core.number, core.clocks)


def load(op: LoadOp, core: CoreState) -> Data:
    """Return the elements that a tile covers as a tensor; undefined at points outside the tile's set."""
    covered: AnyTile = core.values[op.tile]
    found = pieces(covered, op, core.number)
    if covered.mask is None and len(found) == 1:
        return Data(np.ascontiguousarray(_read(found[0], op, core).transpose(covered.order)))
    values = np.zeros(covered.extents, dtype_of(op.result.type))
    for piece in found:
        if _size(piece):
            values[piece.at] = _read(piece, op, core)
    mask = None if covered.mask is None else covered.mask.transpose(covered.order)
    return Data(np.ascontiguousarray(values.transpose(covered.order)), mask)


def store(op: StoreOp, core: CoreState) -> None:
    """Write a tensor through a tile.

    Raises:
        MachineFault: an element that is stored has no value.
    """
    covered: AnyTile = core.values[op.tile]
    data: Data = core.values[op.value]
    back = np.argsort(covered.order)
    values = data.values.reshape(shape_of(op.value.type)).transpose(back)
    if data.defined is not None:
        missing = ~data.defined.transpose(back)
        if covered.mask is not None:
            missing = missing & covered.mask
        if missing.any():
            message = f"{int(missing.sum())} of {missing.size} elements that are stored have no value"
            raise fault(FaultKind.UNINITIALISED_READ, message, op, core=core.number)
    for piece in pieces(covered, op, core.number):
        if _size(piece):
            region = _region(piece.view, piece.where, op, core)
            region.write(piece.where, values[piece.at], op, core.number, core.clocks)


RULES: Mapping[str, Callable[[Any, CoreState], list[Any]]] = {
    ConstructMemoryViewOp.name: lambda op, core: [view(op, core)],
    ConstructDistributedMemoryViewOp.name: lambda op, core: [distributed(op, [core.values[v] for v in op.memrefs])],
    ConstructAccessTileOp.name: lambda op, core: [tile(op, core)],
    ConstructIndirectAccessTileOp.name: lambda op, core: [indirect(op, core)],
    LoadOp.name: lambda op, core: [load(op, core)],
    StoreOp.name: lambda op, core: store(op, core) or [],
}


def _size(piece: TilePiece) -> int:
    return int(np.prod(piece.where.shape))
