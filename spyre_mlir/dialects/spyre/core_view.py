"""The part of a buffer that each core sees, which decides whether the buffer can live in the scratchpads.

A scratchpad belongs to one core. A buffer can live there only if every op that touches it gives each core the same
slice of it: then the slice stays where it is, and the cores never need one another's bytes.

Decision: docs/decisions/0147-cores-count-along-a-dimension.md
Decision: docs/decisions/0213-walks-and-slices-are-known-in-either-memory.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import prod

from spyre_mlir.dialects.spyre.attributes import DeviceTensor
from spyre_mlir.dialects.superdsc.model.descriptor import Dim, OpClass, core_slices
from spyre_mlir.hw.hashed_once import hashed_once
from spyre_mlir.hw.spec import STICK_BYTES
from spyre_mlir.hw.sticks import (
    UNIT,
    IndexMap,
    LinearExpr,
    StickAccess,
    StickError,
    StickLayout,
    StrideNest,
    access,
    walk,
)


@dataclass(frozen=True)
class CoreLoop:
    """One loop as divided over cores: its padded extent, its logical extent, and its slices."""

    padded: int
    extent: int
    split: int

    @property
    def per_core(self) -> int:
        """Return the elements one core runs over; an undivided loop runs over its logical extent."""
        return self.padded // self.split if self.split > 1 else self.extent


CoreLoops = Mapping[str, CoreLoop]
Owners = Sequence[tuple[str, ...]]  # by dimension of a tensor, the divided loops that walk it, the outermost first


@hashed_once
@dataclass(frozen=True)
class CoreView:
    """The slices of a buffer.

    Attributes:
        parts: equal slices of every dimension of the tensor.
        slices: per core, which slice of every dimension it holds.
    """

    parts: tuple[int, ...]
    slices: tuple[tuple[int, ...], ...]

    def layout(self, whole: StickLayout) -> StickLayout:
        """Return the layout of one core's slice in its scratchpad."""
        return _part_of(whole, self.parts)

    def bytes_per_core(self, tensor: DeviceTensor) -> int:
        """Return the bytes of one core's slice."""
        return self.layout(tensor.layout).sticks(tensor.lanes) * STICK_BYTES

    def __str__(self) -> str:
        cores = "1 core" if len(self.slices) == 1 else f"{len(self.slices)} cores"
        order = ", ".join(str(list(s)) for s in self.slices[:3])
        return (
            f"slices {list(self.parts)} on {cores} (cores 0, 1, … hold {order}{' …' if len(self.slices) > 3 else ''})"
        )


@lru_cache(maxsize=1 << 12)
def _part_of(whole: StickLayout, parts: tuple[int, ...]) -> StickLayout:
    """The layout of one of equal slices."""
    return replace(whole, extents=tuple([e // p for e, p in zip(whole.extents, parts, strict=True)]))


def core_view(tensor: DeviceTensor, index: IndexMap, loops: CoreLoops, table: Sequence[Mapping[str, int]]) -> CoreView:
    """Return the slices of a tensor that follow from an op's division of work.

    Args:
        tensor: the buffer.
        index: how the op walks it.
        loops: all loops of the op.
        table: per core, its slice of every loop.

    Raises:
        StickError: the cores' parts are no equal slices, or a part would be needed on several cores.
    """
    owners = _owners(tensor, index, loops)
    return _cut(owners, table, {name: lp.split for name, lp in loops.items()})


def _cut(owners: Owners, table: Sequence[Mapping[str, int]], splits: Mapping[str, int]) -> CoreView:
    """The slices of a tensor whose dimensions are divided by these loops."""
    parts = tuple([prod([splits[n] for n in names]) for names in owners])
    columns = [_slices(names, table, splits) for names in owners]
    return CoreView(parts, tuple(zip(*columns, strict=True)) if columns else ((),) * len(table))


def _owners(tensor: DeviceTensor, index: IndexMap, loops: CoreLoops) -> Owners:
    """The divided loops of each dimension.

    Raises:
        StickError: as for `core_view`.
    """
    layout = tensor.layout
    if layout.unit_extent != 1 or any(e.terms for e in index[len(layout.extents) :]):
        raise StickError("a tensor that is relaid out from or to a sparse one has no slices of its own")
    used = [n for e in index for n, _ in e.terms]
    for name, lp in loops.items():
        if lp.split > 1 and used.count(name) != 1:
            raise StickError(
                f"{name} is divided over {lp.split} cores and walks {used.count(name)} dimensions of this tensor, "
                "so several cores would need the same elements"
            )
    owners = [_divided_by(e, loops) for e in index[: len(layout.extents)]]
    for dim, (names, expr) in enumerate(zip(owners, index, strict=False)):
        if names:
            _check_slices(tensor, dim, names, expr, loops)
    return owners


def _divided_by(expr: LinearExpr, loops: CoreLoops) -> tuple[str, ...]:
    """The divided loops of a dimension, the outermost first."""
    terms = expr.terms if len(expr.terms) < 2 else sorted(expr.terms, key=lambda term: -term[1])
    return tuple([n for n, _ in terms if loops[n].split > 1])


def _slices(names: Sequence[str], table: Sequence[Mapping[str, int]], splits: Mapping[str, int]) -> Sequence[int]:
    """Per core, the number of its slice of a dimension that some loops divide."""
    if not names:
        return (0,) * len(table)
    first, *others = names
    numbers = [row[first] for row in table]
    for name in others:
        numbers = [number * splits[name] + row[name] for number, row in zip(numbers, table, strict=True)]
    return numbers


def _check_slices(tensor: DeviceTensor, dim: int, names: Sequence[str], expr: LinearExpr, loops: CoreLoops) -> None:
    """The divided loops are the outermost of their dimension and cover it; a core has one step of all but the last."""
    steps, have = dict(expr.terms), tensor.layout.extents[dim]
    inner = expr.const + sum(c * (loops[n].padded - 1) for n, c in expr.terms if n not in names)
    if inner >= steps[names[-1]]:
        raise StickError(f"{names[-1]} is divided but not the outermost loop of {expr}, so its slices are scattered")
    whole = have
    for name in names:
        lp, covered = loops[name], steps[name] * loops[name].padded
        if covered != whole:
            raise StickError(f"{expr} covers {covered} of the {whole} elements of dimension {dim}, which is divided")
        if name != names[-1] and lp.padded != lp.split:
            both = " and ".join(names)
            raise StickError(f"{both} are both divided and walk one dimension, {expr}, and a core has more of {name}")
        whole = steps[name]
    if _passes_over_elements(expr, loops) and dim == next(d for d in tensor.layout.order if _extent(tensor, d) > 1):
        # A file says where a slice begins by its number, and has no step in which slices follow each other; along inner
        # dimensions the whole extent, which the file has, says that they are those of another tensor.
        raise StickError(f"{expr} passes over elements of dimension {dim}, which is divided and outermost")
    cores = prod([loops[n].split for n in names])
    if dim == tensor.layout.stick and have // cores % tensor.block:
        raise StickError(f"a slice of {have // cores} elements is no whole sticks of {tensor.block}")


def _passes_over_elements(expr: LinearExpr, loops: CoreLoops) -> bool:
    """Return whether a walk leaves elements out between those that it takes."""
    reach = 0
    for name, step in sorted(expr.terms, key=lambda term: term[1]):
        if step > reach + 1:
            return True
        reach += step * (loops[name].padded - 1)
    return False


def _extent(tensor: DeviceTensor, dim: int) -> int:
    return tensor.layout.unit_extent if dim == UNIT else tensor.layout.extents[dim]


def local_walk(
    tensor: DeviceTensor, index: IndexMap, loops: CoreLoops, view: CoreView
) -> tuple[StickAccess, StrideNest]:
    """Return one core's access to its slice: a start, strides in its own sticks, and the nested extents.

    Raises:
        StickError: the slice is no walk through sticks, or the walk leaves it.
    """
    return _walk_in(view.layout(tensor.layout), tensor, index, loops)


def _walk_in(
    layout: StickLayout, tensor: DeviceTensor, index: IndexMap, loops: CoreLoops
) -> tuple[StickAccess, StrideNest]:
    """The walk through a slice of a tensor that lies so in a scratchpad."""
    lanes = tensor.lanes
    acc = access(layout, lanes, _side_by_side(index, layout.stick, loops), {n: lp.per_core for n, lp in loops.items()})
    padded = {n: lp.padded // lp.split for n, lp in loops.items()}
    steps = {n: padded[n] // lanes if n == acc.lane else padded[n] for n in acc.strides}
    last = acc.offset + sum(stride * (steps[n] - 1) for n, stride in acc.strides.items())
    if last >= layout.sticks(lanes):
        raise StickError(f"a core walks up to stick {last} and holds {layout.sticks(lanes)}")
    order = _shared_order(tensor, index, tuple([(n, lp.padded, lp.extent) for n, lp in loops.items()]))
    return acc, walk(acc, padded, lanes, like=order)


@lru_cache(maxsize=1 << 12)
def _shared_order(tensor: DeviceTensor, index: IndexMap, loops: tuple[tuple[str, int, int], ...]) -> tuple[str, ...]:
    """The order of the loops in a walk through the whole tensor: the same under all divisions."""
    whole = {name: padded for name, padded, _ in loops}
    acc = access(tensor.layout, tensor.lanes, index, {name: extent for name, _, extent in loops})
    return walk(acc, whole, tensor.lanes).order


def _side_by_side(index: IndexMap, stick: int | None, loops: CoreLoops) -> IndexMap:
    """The index without the steps that no core takes: what they would pass over is another core's."""

    def taken(expr: LinearExpr) -> LinearExpr:
        if all(c == 1 or loops[n].padded > loops[n].split for n, c in expr.terms):
            return expr
        return replace(expr, terms=tuple([(n, c if loops[n].padded > loops[n].split else 1) for n, c in expr.terms]))

    return tuple([expr if dim == stick else taken(expr) for dim, expr in enumerate(index)])


@hashed_once
@dataclass(frozen=True)
class CoreDivision:
    """The loops of a kernel as divided over cores.

    Attributes:
        loops: name, padded and logical extent, and slices of each, result loops first.
        is_product: whether the kernel sums products, whose sum cores divide first.
    """

    loops: tuple[tuple[str, int, int, int], ...]
    is_product: bool

    @cached_property
    def core_loops(self) -> CoreLoops:
        """The loops by name."""
        return {name: CoreLoop(padded, extent, split) for name, padded, extent, split in self.loops}

    @property
    def table(self) -> tuple[Mapping[str, int], ...]:
        """Per core, its slice of every loop."""
        return _table(self)

    def numbered(self, owners: Owners) -> tuple[CoreDivision, tuple[tuple[str, ...], ...]]:
        """Return the division as any other that divides so, its loops named by their places, and so the owners."""
        names = {name: str(place) for place, (name, *_) in enumerate(self.loops)}
        loops = tuple([(names[name], split, split, split) for name, _, _, split in self.loops])
        return CoreDivision(loops, self.is_product), tuple([tuple([names[n] for n in own]) for own in owners])


@dataclass(frozen=True)
class LoopExtents:
    """The loops of a kernel before they are divided over cores.

    Attributes:
        padded: extents as the hardware runs them.
        extents: those of the model.
        kept: the loops that the result has.
        is_product: whether the kernel sums products.
    """

    padded: Mapping[str, int]
    extents: Mapping[str, int]
    kept: Set[str]
    is_product: bool

    def divided(self, splits: Mapping[str, int]) -> CoreDivision:
        """Return the loops as divided so; cores are numbered with the first loop of the division fastest."""
        ordered = [name for name in splits if name in self.kept] + [name for name in splits if name not in self.kept]
        loops = tuple([(name, self.padded[name], self.extents[name], splits[name]) for name in ordered])
        return CoreDivision(loops, self.is_product)


@lru_cache(maxsize=1 << 12)
def _table(division: CoreDivision) -> tuple[Mapping[str, int], ...]:
    dims = [Dim(name, padded, split) for name, padded, _, split in division.loops]
    return core_slices(dims, OpClass.MATMUL if division.is_product else OpClass.POINTWISE)


@lru_cache(maxsize=1 << 12)
def _numbered_view(division: CoreDivision, owners: tuple[tuple[str, ...], ...]) -> CoreView:
    """The slices of a tensor: kernels with loops of other names and extents have equal ones."""
    return _cut(owners, division.table, {name: split for name, _, _, split in division.loops})


@dataclass(frozen=True)
class LocalSlices:
    """The slices of an operand in the scratchpads.

    Attributes:
        view: which core sees which.
        walk: how a core walks through its own.
        bytes: of one.
    """

    view: CoreView
    walk: tuple[StickAccess, StrideNest]
    bytes: int


@lru_cache(maxsize=1 << 12)
def local_slices(tensor: DeviceTensor, index: IndexMap, division: CoreDivision) -> LocalSlices | None:
    """Return the slices of a tensor that follow from a division; None if the scratchpads cannot hold them.

    Args:
        tensor: in device memory, so that it is looked at once wherever it lies.
        index: how the kernel walks it.
        division: of the kernel.
    """
    loops = division.core_loops
    try:
        view = _numbered_view(*division.numbered(_owners(tensor, index, loops)))
        own = view.layout(tensor.layout)
        return LocalSlices(view, _walk_in(own, tensor, index, loops), own.sticks(tensor.lanes) * STICK_BYTES)
    except StickError:
        return None


def hbm_bytes(acc: StickAccess, padded: Mapping[str, int], lanes: int) -> int:
    """Return the bytes an operand moves to or from device memory, every stick once."""
    steps = (padded[n] // lanes if n == acc.lane else padded[n] for n, stride in acc.strides.items() if stride)
    return prod(steps) * STICK_BYTES


__all__ = [
    "CoreDivision",
    "CoreLoop",
    "CoreLoops",
    "CoreView",
    "LocalSlices",
    "LoopExtents",
    "core_view",
    "hbm_bytes",
    "local_slices",
    "local_walk",
]
