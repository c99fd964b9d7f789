"""Views and access tiles of the machine: from coordinates to addresses, with every bound checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.ir import Operation
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineConstraintExpr,
    AffineConstraintKind,
    AffineDimExpr,
    AffineExpr,
    AffineSymExpr,
)

from spyre_mlir.dialects.ktdp.affine import BoxBounds
from spyre_mlir.machine.faults import FaultKind, fault
from spyre_mlir.machine.ktdp.regions import Scattered, Strided, Where
from spyre_mlir.machine.ktdp.values import Array, Mask


@dataclass(frozen=True)
class MemoryView:
    """A range of memory read as a tensor.

    Args:
        start: byte address of the element at coordinate 0.
        sizes: extents.
        strides: bytes from one element to the next along each dimension.
        kind: the elements.
        domain: coordinates it holds.
        core: whose scratchpad it is in; None for device memory.
        masks: whether a tile may reach beyond its sizes: nothing is loaded or stored there.
    """

    start: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    kind: np.dtype[Any]
    domain: BoxBounds
    core: int | None
    masks: bool = False

    @property
    def everything(self) -> Strided:
        """All of its elements."""
        return Strided(self.start, self.sizes, self.strides)


@dataclass(frozen=True)
class Distributed:
    """One tensor of several views; the domains of the parts define the coordinates they hold.

    Args:
        parts: the views.
        sizes: extents of the whole.
    """

    parts: tuple[MemoryView, ...]
    sizes: tuple[int, ...]

    @property
    def kind(self) -> np.dtype[Any]:
        """The elements."""
        return self.parts[0].kind


AnyView = MemoryView | Distributed


@dataclass(frozen=True)
class BoxTile:
    """Coordinates given by a start and a box of offsets.

    Args:
        view: of what.
        start: first coordinate along each dimension.
        extents: how many along each dimension.
        order: which dimension each axis of the tile walks.
        mask: which offsets count, in the dimensions' order; None when all do.
    """

    view: AnyView
    start: tuple[int, ...]
    extents: tuple[int, ...]
    order: tuple[int, ...]
    mask: Mask | None


@dataclass(frozen=True)
class PointTile:
    """Coordinates computed one by one.

    Args:
        view: of what.
        coordinates: along each dimension of the view, in a shape that spreads to the space of variables.
        extents: of the space.
        order: which dimension of the space each axis of the tile walks.
        mask: which points count; None when all do.
    """

    view: MemoryView
    coordinates: tuple[Array, ...]
    extents: tuple[int, ...]
    order: tuple[int, ...]
    mask: Mask | None


AnyTile = BoxTile | PointTile


# --- affine expressions on arrays ---------------------------------------------------------------------------------

_RULES: dict[AffineBinaryOpKind, Callable[[Any, Any], Any]] = {
    AffineBinaryOpKind.Add: lambda a, b: a + b,
    AffineBinaryOpKind.Mul: lambda a, b: a * b,
    AffineBinaryOpKind.Mod: lambda a, b: a % b,
    AffineBinaryOpKind.FloorDiv: lambda a, b: a // b,
    AffineBinaryOpKind.CeilDiv: lambda a, b: -(-a // b),
}


def evaluate(expr: AffineExpr, dims: Sequence[Any], symbols: Sequence[int]) -> Any:
    """An expression of arrays and numbers."""
    match expr:
        case AffineConstantExpr(value):
            return value
        case AffineDimExpr(position):
            return dims[position]
        case AffineSymExpr(position):
            return symbols[position]
        case AffineBinaryOpExpr(kind, lhs, rhs):
            return _RULES[kind](evaluate(lhs, dims, symbols), evaluate(rhs, dims, symbols))
        case _:
            raise TypeError(f"{expr} is no affine expression")


def axes(extents: Sequence[int], start: Sequence[int] | None = None) -> list[Array]:
    """Return the points of a box: along each dimension an array that broadcasts to the others."""
    rank = len(extents)
    return [
        (np.arange(extent) + (0 if start is None else start[place])).reshape(
            (1,) * place + (extent,) + (1,) * (rank - place - 1)
        )
        for place, extent in enumerate(extents)
    ]


def allowed(rules: Sequence[AffineConstraintExpr], points: Sequence[Array], extents: Sequence[int]) -> Mask | None:
    """Return which points of a box satisfy rules; None when there are none."""
    if not rules:
        return None
    mask = np.ones(tuple(extents), np.bool_)
    for rule in rules:
        value = evaluate(rule.lhs - rule.rhs, points, ())
        match rule.kind:
            case AffineConstraintKind.ge:
                mask &= value >= 0
            case AffineConstraintKind.le:
                mask &= value <= 0
            case AffineConstraintKind.eq:
                mask &= value == 0
    return mask


# --- from tiles to pieces -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TilePiece:
    """Elements of one view that a tile covers.

    Args:
        view: whose.
        where: their addresses.
        at: which part of the tile they are, in the dimensions' order.
    """

    view: MemoryView
    where: Where
    at: tuple[slice, ...] | Mask


def pieces(tile: AnyTile, op: Operation, core: int) -> list[TilePiece]:
    """Return the elements a tile covers, view by view.

    Raises:
        MachineFault: ``out-of-bounds``: a coordinate is in none of the views.
    """
    if isinstance(tile, PointTile):
        return [_points(tile)]
    if isinstance(tile.view, MemoryView):
        return [_box(tile, tile.view, op, core)]
    return _parts(tile, tile.view, op, core)


def _points(tile: PointTile) -> TilePiece:
    strides = tile.view.strides
    addresses = sum(
        (axis * stride for axis, stride in zip(tile.coordinates, strides, strict=True)), np.int64(tile.view.start)
    )
    spread = np.broadcast_to(addresses, tile.extents)
    if tile.mask is None:
        return TilePiece(tile.view, Scattered(spread), tuple(slice(None) for _ in tile.extents))
    return TilePiece(tile.view, Scattered(spread[tile.mask]), tile.mask)


def _strided(view: MemoryView, origin: Sequence[int], start: Sequence[int], extents: Sequence[int]) -> Strided:
    first = view.start + sum((s - o) * step for s, o, step in zip(start, origin, view.strides, strict=True))
    return Strided(first, tuple(extents), view.strides)


def _require_inside(tile: BoxTile, low: Sequence[int], high: Sequence[int], op: Operation, core: int) -> None:
    for place, (start, extent) in enumerate(zip(tile.start, tile.extents, strict=True)):
        if start < low[place] or start + extent - 1 > high[place]:
            end = start + extent - 1
            message = f"coordinates {start} to {end} along d{place}, the view has {low[place]} to {high[place]}"
            raise fault(FaultKind.OUT_OF_BOUNDS, message, op, core=core)


def _box(tile: BoxTile, view: MemoryView, op: Operation, core: int) -> TilePiece:
    zero = [0] * len(view.sizes)
    last = [size - 1 for size in view.sizes]
    if tile.mask is None:
        _require_inside(tile, zero, last, op, core)
        if not any(view.domain.low) and view.domain.rules:
            _require_allowed(tile, view.domain, op, core)
        return TilePiece(view, _strided(view, zero, tile.start, tile.extents), tuple(slice(None) for _ in tile.extents))
    points = axes(tile.extents, tile.start)
    for place, (axis, end) in enumerate(zip(points, last, strict=True)):
        outside = np.broadcast_to((axis < 0) | (axis > end), tile.extents) & tile.mask
        if outside.any():
            raise fault(FaultKind.OUT_OF_BOUNDS, f"coordinates beyond {end} along d{place} of the view", op, core=core)
    return _points(PointTile(view, tuple(points), tile.extents, tile.order, tile.mask))


def _require_allowed(tile: BoxTile, domain: BoxBounds, op: Operation, core: int) -> None:
    mask = allowed(domain.rules, axes(tile.extents, tile.start), tile.extents)
    if mask is not None and not mask.all():
        raise fault(FaultKind.OUT_OF_BOUNDS, "coordinates that the view's set leaves out", op, core=core)


def _parts(tile: BoxTile, whole: Distributed, op: Operation, core: int) -> list[TilePiece]:
    _require_inside(tile, [0] * len(whole.sizes), [size - 1 for size in whole.sizes], op, core)
    covered = np.zeros(tile.extents, np.int8)
    found: list[TilePiece] = []
    for part in whole.parts:
        low = [max(a, b) for a, b in zip(tile.start, part.domain.low, strict=True)]
        ends = [start + extent - 1 for start, extent in zip(tile.start, tile.extents, strict=True)]
        high = [min(a, b) for a, b in zip(ends, part.domain.high, strict=True)]
        if any(a > b for a, b in zip(low, high, strict=True)):
            continue
        extents = [b - a + 1 for a, b in zip(low, high, strict=True)]
        at = tuple(slice(a - s, a - s + n) for a, s, n in zip(low, tile.start, extents, strict=True))
        mask = allowed(part.domain.rules, axes(extents, low), extents)
        if tile.mask is not None:
            mask = tile.mask[at] if mask is None else mask & tile.mask[at]
        if mask is None:
            covered[at] += 1
            found.append(TilePiece(part, _strided(part, part.domain.low, low, extents), at))
            continue
        local = [axis - origin for axis, origin in zip(axes(extents, low), part.domain.low, strict=True)]
        where = np.zeros(tile.extents, np.bool_)
        where[at] = mask
        covered[at] += mask
        points = _points(PointTile(part, tuple(local), tuple(extents), tile.order, mask))
        found.append(TilePiece(part, points.where, where))
    wanted = np.ones(tile.extents, np.int8) if tile.mask is None else tile.mask.astype(np.int8)
    if (covered < wanted).any():
        raise fault(
            FaultKind.OUT_OF_BOUNDS, f"{int((covered < wanted).sum())} coordinates are in no part", op, core=core
        )
    if (covered > 1).any():
        raise fault(FaultKind.OUT_OF_BOUNDS, "coordinates that two parts hold; parts must be disjoint", op, core=core)
    return found
