"""Stick layouts on plain integers: the stick and lane of device memory that hold an element.

A device tensor is a dense row-major array of 128-byte sticks. One dimension, the stick dimension, runs
through the lanes of a stick; it also has a place among the outer dimensions, counting sticks. Every tensor
has an implicit last dimension `UNIT` of extent 1; a tensor whose stick dimension is `UNIT` is sparse:
one valid element, in lane 0, per stick.

Source: torch-spyre, tensors_and_layouts.md and spyre_tensor_impl.cpp; certain.

Decision: docs/decisions/0020-sparse-tensors.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from spyre_mlir.hw.hashed_once import hashed_once

UNIT = -1


class StickError(ValueError):
    """An access that sticks cannot express; the message says why."""


@hashed_once
@dataclass(frozen=True)
class LinearExpr:
    """A constant plus a sum of coefficient * iteration dimension."""

    const: int = 0
    terms: tuple[tuple[str, int], ...] = ()

    @staticmethod
    def of(name: str) -> LinearExpr:
        """Return the iteration dimension `name` itself."""
        return LinearExpr(0, ((name, 1),))

    def __str__(self) -> str:
        parts = [name if c == 1 else f"{name} * {c}" for name, c in self.terms]
        if self.const or not parts:
            parts.append(str(self.const))
        return " + ".join(parts).replace("+ -", "- ")

    def shifted(self, by: int) -> LinearExpr:
        """Return the same expression plus a constant."""
        return replace(self, const=self.const + by)

    def moved(self, name: str, by: int) -> LinearExpr:
        """Return the expression in which the iteration dimension `name` counts from `by` on."""
        return self.shifted(sum(c for n, c in self.terms if n == name) * by)

    def at(self, places: Mapping[str, LinearExpr]) -> LinearExpr:
        """Return the same expression with others in the places of its dimensions."""
        const, terms = self.const, dict[str, int]()
        for name, times in self.terms:
            const += times * places[name].const
            for inner, coefficient in places[name].terms:
                terms[inner] = terms.get(inner, 0) + times * coefficient
        return LinearExpr(const, tuple((n, c) for n, c in terms.items() if c))

    def last(self, extents: Mapping[str, int]) -> int:
        """Largest value for iteration dimensions of the given extents."""
        return self.const + sum(c * (extents[n] - 1) for n, c in self.terms if c > 0)

    def first(self, extents: Mapping[str, int]) -> int:
        """Smallest value for iteration dimensions of the given extents."""
        return self.const + sum(c * (extents[n] - 1) for n, c in self.terms if c < 0)


IndexMap = tuple[LinearExpr, ...]


@hashed_once
@dataclass(frozen=True)
class StickLayout:
    """Device layout of a tensor's elements.

    Attributes:
        order: dimensions, outermost first; the stick dimension stands where its stick number counts.
        stick: the dimension in the lanes; `UNIT` for a sparse tensor.
        extents: elements reserved per dimension, padding included; whole sticks in the stick dimension.
        unit_extent: reserved extent of `UNIT` when it is not the stick dimension; 1 unless the
            tensor was relaid out from a sparse one.
    """

    order: tuple[int, ...]
    stick: int
    extents: tuple[int, ...]
    unit_extent: int = 1

    def __post_init__(self) -> None:
        rank = len(self.extents)
        wanted = [*range(rank), *([UNIT] if self.stick == UNIT or self.unit_extent > 1 else [])]
        if sorted(self.order) != sorted(wanted):
            raise StickError(f"order {list(self.order)} does not list each dimension of a tensor of rank {rank} once")
        if any(e < 1 for e in self.extents) or self.unit_extent < 1:
            raise StickError(f"extents {list(self.extents)} are not all positive")

    @staticmethod
    def published(shape: Sequence[int], stick: int, lanes: int) -> StickLayout:
        """Return the layout that the current front end gives a tensor with stick dimension `stick`.

        The first dimension moves next to the stick; (128, 256) becomes [4, 128, 64].
        """
        order = [d for d in range(len(shape)) if d != stick] + [stick]
        device = (*order[1:], order[0]) if len(order) > 1 else tuple(order)
        extents = tuple(round_up(e, lanes) if d == stick else e for d, e in enumerate(shape))
        return StickLayout(device, stick, extents)

    @staticmethod
    def default(shape: Sequence[int], lanes: int) -> StickLayout:
        """Return the layout that the front end gives a tensor that it places, with nothing reserved but whole sticks.

        The last dimension is in the lanes; if its extent is 1, that is a sparse tensor.
        """
        return StickLayout.published(shape, len(shape) - 1 if shape and shape[-1] > 1 else UNIT, lanes)

    @staticmethod
    def rows_outermost(shape: Sequence[int], stick: int, lanes: int) -> StickLayout:
        """Return the layout with dimensions in host order, the stick last: required for the table of a gather."""
        extents = tuple(round_up(e, lanes) if d == stick else e for d, e in enumerate(shape))
        return StickLayout((*(d for d in range(len(shape)) if d != stick), stick), stick, extents)

    def with_outermost(self, dim: int) -> StickLayout:
        """Return the layout with one dimension outside of all others, whose order stays."""
        return replace(self, order=(dim, *(d for d in self.order if d != dim)))

    @staticmethod
    def of_indices(shape: Sequence[int], lanes: int) -> StickLayout:
        """Return the layout required for gather indices: host order, the last dimension in the lanes; or a scalar."""
        if not shape:
            return StickLayout.published((), UNIT, lanes)
        return StickLayout.rows_outermost(shape, len(shape) - 1, lanes)

    def count(self, dim: int, lanes: int) -> int:
        """Return the distance in sticks between the ends of `dim`, in units of its own stride."""
        if dim == UNIT:
            return 1 if self.stick == UNIT else self.unit_extent
        return self.extents[dim] // lanes if dim == self.stick else self.extents[dim]

    def strides(self, lanes: int) -> dict[int, int]:
        """Return the sticks between neighbours, by dimension; for the stick dimension between neighbouring sticks."""
        strides, unit = dict[int, int](), 1
        for dim in reversed(self.order):
            strides[dim] = unit
            unit *= self.count(dim, lanes)
        return strides

    def sticks(self, lanes: int) -> int:
        """Number of sticks of the tensor."""
        return prod(self.count(d, lanes) for d in self.order)

    def lies_as(self, other: StickLayout, lanes: int) -> bool:
        """Return whether both layouts put each element at the same place, in whatever order single sticks stand."""
        return self.stick == other.stick and self._walked(lanes) == other._walked(lanes)

    def _walked(self, lanes: int) -> list[tuple[int, int]]:
        return [(dim, count) for dim in self.order if (count := self.count(dim, lanes)) > 1]

    def device_sizes(self, shape: Sequence[int], lanes: int) -> tuple[list[int], list[int]]:
        """Return the layout as torch-spyre writes it: sizes of the dimensions on the device, and what each one walks.

        The last dimension is the lanes. What a dimension walks is in elements of the dense tensor on the host; -1 where
        it walks nothing of it.

        Args:
            shape: extents of the tensor.
            lanes: elements per stick.
        """
        dense = [prod(shape[dim + 1 :]) if extent > 1 else -1 for dim, extent in enumerate(shape)]
        sizes = [self.count(dim, lanes) for dim in self.order]
        walked = [-1 if dim == UNIT else dense[dim] for dim in self.order]
        if self.stick == UNIT:
            if shape and shape[-1] == 1:  # the last dimension stands for the lanes
                del sizes[self.order.index(UNIT)], walked[self.order.index(UNIT)]
            return [*sizes, lanes], [*walked, -1]
        place = self.order.index(self.stick)
        walked[place] *= lanes if walked[place] > 0 else 1
        return [*sizes, lanes], [*walked, dense[self.stick]]

    def reserving(self, dim: int, extent: int) -> StickLayout:
        """Return the same layout with another extent of `dim`."""
        extents = tuple(extent if d == dim else e for d, e in enumerate(self.extents))
        return replace(self, extents=extents)


def dim_text(dim: int) -> str:
    """Return a dimension as layouts name it."""
    return "unit" if dim == UNIT else str(dim)


def round_up(extent: int, multiple: int) -> int:
    """Return the next multiple of `multiple` at or above `extent`."""
    return -(-extent // multiple) * multiple


@dataclass(frozen=True)
class StickAccess:
    """Access pattern of an operand in device memory: a start, and sticks per step of each iteration dimension.

    Attributes:
        offset: sticks from the tensor's first stick.
        strides: sticks per step; for the lane dimension, per stick.
        lane: the iteration dimension in the lanes, or None when lane 0 alone is meant.
    """

    offset: int
    strides: Mapping[str, int]
    lane: str | None


def access(layout: StickLayout, lanes: int, index: IndexMap, extents: Mapping[str, int]) -> StickAccess:
    """Turn an index map on a tensor into an access to its sticks.

    Args:
        layout: where the tensor's elements lie.
        lanes: elements per stick.
        index: one expression per tensor dimension, and optionally one more for `UNIT`.
        extents: extent of every iteration dimension, before rounding to sticks.

    Raises:
        StickError: the map leaves the tensor, or needs lanes that a stick cannot give.
    """
    by_dim, strides = layout.strides(lanes), dict[str, int]()
    offset, lane = 0, None
    for dim, expr in zip((*range(len(layout.extents)), UNIT), index, strict=False):
        _check_range(layout, dim, expr, extents, lanes)
        step, divisor = by_dim[dim], lanes if dim == layout.stick else 1
        if dim == layout.stick:
            lane = _lane_of(expr, lanes)
        offset += step * (expr.const // divisor)
        for name, coefficient in expr.terms:
            factor = 1 if dim == layout.stick and name == lane else coefficient // divisor
            strides[name] = strides.get(name, 0) + step * factor
    if lane is not None and [name for expr in index for name, _ in expr.terms].count(lane) > 1:
        raise StickError(f"{lane} is in the lanes and in another dimension: a diagonal")
    return StickAccess(offset, strides, lane)


def _check_range(layout: StickLayout, dim: int, expr: LinearExpr, extents: Mapping[str, int], lanes: int) -> None:
    first, last = expr.const, expr.const
    for name, coefficient in expr.terms:
        if name not in extents:
            raise StickError(f"index {expr} uses '{name}', the loops are {', '.join(extents) or 'none'}")
        if coefficient > 0:
            last += coefficient * (extents[name] - 1)
        else:
            first += coefficient * (extents[name] - 1)
    have = layout.extents[dim] if dim != UNIT else lanes if layout.stick == UNIT else layout.unit_extent
    if first < 0 or last >= have:
        raise StickError(
            f"index {expr} runs over {first} to {last}, dimension {'unit' if dim == UNIT else dim} has {have}"
        )
    if any(c < 0 for _, c in expr.terms):
        raise StickError(f"index {expr} runs backwards")


def _lane_of(expr: LinearExpr, lanes: int) -> str | None:
    """The iteration dimension that runs through the lanes."""
    if expr.const % lanes:
        raise StickError(f"index {expr} starts inside a stick of {lanes}")
    inside = [(n, c) for n, c in expr.terms if c % lanes]
    if len(inside) > 1 or any(c != 1 for _, c in inside):
        raise StickError(f"index {expr} does not walk the {lanes} lanes of a stick one by one")
    return inside[0][0] if inside else None


@dataclass(frozen=True)
class StrideNest:
    """An access as nested extents, the form that a SuperDSC allocation can express.

    Attributes:
        order: iteration dimensions, innermost first; fillers are dimensions of extent 1 that stand for a gap.
        extents: reserved elements per entry of order, at least the iteration's.
        fillers: names in `order` that are not iteration dimensions.
    """

    order: tuple[str, ...]
    extents: tuple[int, ...]
    fillers: tuple[str, ...]


def walk(
    acc: StickAccess, extents: Mapping[str, int], lanes: int, like: Sequence[str] = (), *, gathered: bool = False
) -> StrideNest:
    """Nest the strides of an access, innermost first.

    A lane dimension of one stick shares its stride with a neighbour and stands outermost, as the front end has it once
    dimensions of one step are dropped (torch-spyre `align_tensors`; certain).

    Args:
        acc: the access.
        extents: iteration extents; the lane dimension's in whole sticks.
        lanes: elements per stick.
        like: the order that dimensions of one step are to stand in, where there is a choice.
        gathered: whether indices pick what is walked; then the rows they pick stay outermost.

    Raises:
        StickError: the strides do not divide one another, or the walk overlaps itself.
    """
    # A dimension of one step has the stride of its neighbour; it is the inner one, and so is the lane of two such.
    several = {n for n in acc.strides if extents[n] > (lanes if n == acc.lane else 1)}
    places = {n: place for place, n in enumerate(like)}
    single = [n for n in acc.strides if n == acc.lane and n not in several]
    outermost = [n for n in single if not gathered and _stands_outermost(acc, n, like)]
    nested = [item for item in acc.strides.items() if item[0] not in outermost]
    items = sorted(nested, key=lambda i: (i[1], i[0] in several, places.get(i[0], -1), i[0] != acc.lane))
    order, reserved, fillers = list[str](), list[int](), list[str]()
    unit = 1
    for name, stride in items:
        if stride % unit:
            raise StickError(f"the stride of {name}, {stride} sticks, is no multiple of {unit}")
        gap = stride // unit
        if order:
            inner = order[-1]
            if gap * (lanes if inner == acc.lane else 1) < extents[inner]:
                raise StickError(f"{inner} of extent {extents[inner]} runs into {name} after {gap} steps")
            reserved.append(gap * (lanes if inner == acc.lane else 1))
        elif gap > 1:
            fillers.append(f"_{len(fillers)}")
            order.append(fillers[-1])
            reserved.append(gap)
        order.append(name)
        unit = stride
    if order:
        reserved.append(extents[order[-1]])
    return StrideNest((*order, *outermost), (*reserved, *(extents[n] for n in outermost)), tuple(fillers))


def _stands_outermost(acc: StickAccess, lane: str, like: Sequence[str]) -> bool:
    """Return whether a one-stick lane dimension has a neighbour's stride, and no given order puts it elsewhere."""
    shared = any(stride == acc.strides[lane] for name, stride in acc.strides.items() if name != lane)
    return shared and (not like or like[-1] == lane)
