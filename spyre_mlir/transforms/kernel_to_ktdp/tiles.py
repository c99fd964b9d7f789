"""Tiled form of a kernel op: its loops split at the sticks, and the strides of every operand along the parts.

Plain values, no IR. A stick layout is nothing but strides: a loop in the lanes of a stick is cut in two, the sticks
and the lanes, and along each of the two the elements lie at one distance. So every operand of every kernel op is a
strided view, and the view of a tensor that is read in its own order is the device tensor itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod

from spyre_mlir.dialects.spyre.attributes import DeviceTensor
from spyre_mlir.dialects.spyre.kernel import KernelOp
from spyre_mlir.dialects.spyre.kernel_gather import GatherOp
from spyre_mlir.errors import LoweringError
from spyre_mlir.hw.sticks import StickAccess

LoopPart = tuple[str, int]  # a part of a loop: its name, and the elements one step advances


@dataclass(frozen=True)
class LoopCut:
    """One loop of a kernel op.

    Attributes:
        name: the loop.
        extent: elements the model asks for.
        split: over how many cores it is divided.
        parts: (elements per step, steps over all cores), outermost first.
    """

    name: str
    extent: int
    split: int
    parts: tuple[tuple[int, int], ...]

    @property
    def outer(self) -> LoopPart:
        """The outermost part: divided over cores and into tiles."""
        return (self.name, self.parts[0][0])

    @property
    def steps(self) -> int:
        """Steps of the outermost part on one core."""
        return self.parts[0][1] // self.split

    @property
    def inner(self) -> int:
        """Elements inside one step of the outermost part."""
        return self.parts[0][0]


@dataclass(frozen=True)
class OperandWalk:
    """Access of a kernel op to one operand.

    Attributes:
        number: which operand.
        tensor: its type.
        offset: elements from the first of the buffer, or of the core's slice of it.
        strides: elements per step, for the axes it walks.
    """

    number: int
    tensor: DeviceTensor
    offset: int
    strides: Mapping[LoopPart, int]

    @property
    def local(self) -> bool:
        """Return whether it is in the scratchpads, a slice on each core."""
        return self.tensor.space == "lx"

    @property
    def device_order(self) -> tuple[LoopPart, ...]:
        """Return the axes of the access in memory order, outermost first."""
        return tuple(sorted(self.strides, key=lambda axis: -self.strides[axis]))


@dataclass(frozen=True)
class LoopPiece:
    """Part of a loop that one tile shape covers.

    Attributes:
        first: first step of the outermost part.
        steps: how many of its steps.
        lanes: elements of the inner part; fewer than a whole stick in the last piece of a padded loop.
    """

    first: int
    steps: int
    lanes: int


@dataclass(frozen=True)
class TiledKernel:
    """A kernel op in tiles.

    Attributes:
        op: the op.
        cuts: its loops.
        readings: its operands, the output last.
        places: for every divided loop, (cores per slice, slices) so that the slice is core / cores % slices.
    """

    op: KernelOp
    cuts: Mapping[str, LoopCut]
    readings: tuple[OperandWalk, ...]
    places: Mapping[str, tuple[int, int]]

    @property
    def cores(self) -> int:
        """Cores that take part."""
        return prod(cut.split for cut in self.cuts.values())

    def count(self, axis: LoopPart, *, local: bool = False) -> int:
        """Steps of an axis, over all cores or on one."""
        cut = self.cuts[axis[0]]
        steps = dict(cut.parts)[axis[1]]
        return steps // cut.split if local and axis == cut.outer else steps

    def pieces(self, name: str) -> list[LoopPiece]:
        """Return the loop without its padding: the whole sticks, and the used part of the last one.

        Raises:
            LoweringError: the loop is divided over cores, and ends inside of a stick.
        """
        cut = self.cuts[name]
        if len(cut.parts) == 1 or cut.extent % cut.inner == 0:
            return [LoopPiece(0, cut.steps, cut.inner)]
        if cut.split > 1 or len(cut.parts) > 2:
            raise LoweringError(f"{name} of extent {cut.extent} is divided, and ends inside a stick of {cut.inner}")
        whole, rest = divmod(cut.extent, cut.inner)
        return [*([LoopPiece(0, whole, cut.inner)] if whole else []), LoopPiece(whole, 1, rest)]


def kernel_in_tiles(op: KernelOp) -> TiledKernel:
    """Return the loops and operands of a kernel op, split at sticks."""
    accesses = tuple(op.local_walk(n)[0] if t.space == "lx" else a for n, (t, a) in enumerate(_walks(op)))
    cuts = {d.name: _cut(op, d.name, d.extent, d.split, accesses) for d in op.space.data}
    readings = tuple(
        OperandWalk(n, t, a.offset * t.lanes, _strides(cuts, a, t.lanes))
        for n, (t, a) in enumerate(zip(op.tensors, accesses, strict=True))
    )
    places, cores = dict[str, tuple[int, int]](), 1
    for name in op.core_slices()[0]:  # from the loop that changes fastest over core numbers
        if cuts[name].split > 1:
            places[name] = (cores, cuts[name].split)
        cores *= cuts[name].split
    return TiledKernel(op, cuts, readings, places)


def _walks(op: KernelOp) -> zip[tuple[DeviceTensor, StickAccess]]:
    return zip(op.tensors, op.accesses(), strict=True)


def _cut(op: KernelOp, name: str, extent: int, split: int, accesses: Sequence[StickAccess]) -> LoopCut:
    lanes = [(t.lanes, t, a) for t, a in zip(op.tensors, accesses, strict=True) if a.lane == name]
    # A loop that walks whole sticks next to one another has one stride: it need not be cut. Only the indices of a
    # gather may do so, the lanes of the others are the vectors that a core computes on.
    uncut = [a for _, t, a in lanes if isinstance(op, GatherOp) and t is op.tensors[0] and a.strides[name] == 1]
    sticks = sorted({n for n, _, a in lanes if a not in uncut}, reverse=True)
    padded = op.padded_extents()[name]
    if sticks:
        padded = -(-padded // sticks[0]) * sticks[0]
    bounds = [padded, *sticks, 1]
    return LoopCut(name, extent, split, tuple((inner, outer // inner) for outer, inner in pairwise(bounds)))


def _strides(cuts: Mapping[str, LoopCut], acc: StickAccess, lanes: int) -> dict[LoopPart, int]:
    found = dict[LoopPart, int]()
    for name, sticks in acc.strides.items():
        for weight, steps in cuts[name].parts:
            stride = sticks * lanes
            if acc.lane != name:
                stride *= weight
            elif weight < lanes and not (weight == 1 and len(cuts[name].parts) == 1):
                stride = weight
            else:
                stride = stride * weight // lanes
            if steps > 1 and stride:
                found[name, weight] = stride
    return found


def fit(steps: Mapping[str, int], volume: Callable[[Mapping[str, int]], int], limit: int) -> dict[str, int]:
    """Return steps per tile: whole loops if they fit, else the largest fitting divisor of the next loop, and so on.

    Args:
        steps: of the outermost part of each loop, on one core.
        volume: elements of the largest tile, from the steps per tile.
        limit: elements a tile may have.
    """
    chosen = dict(steps)
    while volume(chosen) > limit:
        name = max(chosen, key=lambda n: chosen[n], default=None)
        if name is None or chosen[name] == 1:
            break
        chosen[name] = max(d for d in range(1, chosen[name]) if steps[name] % d == 0)
    return chosen


__all__ = ["LoopCut", "LoopPart", "LoopPiece", "OperandWalk", "TiledKernel", "fit", "kernel_in_tiles"]
