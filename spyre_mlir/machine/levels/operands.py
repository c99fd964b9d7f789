"""Buffer access of a kernel-level op: one axis per part of a dimension split by sticks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import cast

import numpy as np

from spyre_mlir.dialects.spyre.kernel import KernelOp
from spyre_mlir.hw.sticks import StickAccess
from spyre_mlir.machine.arrays import Array, Mask, first_index, strided
from spyre_mlir.machine.eager_rounding import as_eager, operands_as
from spyre_mlir.machine.faults import FaultKind, fault
from spyre_mlir.machine.levels.buffers import DeviceBuffer

_OUTPUT = "the output"
Sub = tuple[str, int]  # a part of an iteration dimension: its name, and the elements one step advances


@dataclass(frozen=True)
class Grid:
    """An iteration space whose lane dimensions are split at the sticks of every operand.

    Attributes:
        extents: padded extent of every dimension.
        parts: per dimension, (elements per step, steps), outermost first.
    """

    extents: Mapping[str, int]
    parts: dict[str, tuple[tuple[int, int], ...]]

    @staticmethod
    def of(op: KernelOp) -> Grid:
        """Return the grid of an op: a dimension in lanes of 64 and of 32 is [sticks of 64, 2, 32]."""
        extents, parts = op.padded_extents(), dict[str, tuple[tuple[int, int], ...]]()
        accesses = op.accesses()
        for name, extent in extents.items():
            cuts = sorted({t.lanes for a, t in zip(accesses, op.tensors, strict=True) if a.lane == name}, reverse=True)
            bounds = [extent, *cuts, 1]
            pairs = [(inner, outer // inner) for outer, inner in pairwise(bounds)]
            parts[name] = tuple(pairs)
        return Grid(extents, parts)

    @property
    def axes(self) -> list[Sub]:
        """All parts of all dimensions."""
        return self.of_names(list(self.extents))

    def of_names(self, names: Sequence[str]) -> list[Sub]:
        """The parts of some dimensions."""
        return [(n, w) for n in names for w, _ in self.parts[n]]

    def shape(self, axes: Sequence[Sub]) -> list[int]:
        """Steps of every axis."""
        steps = {(n, w): count for n, parts in self.parts.items() for w, count in parts}
        return [steps[a] for a in axes]

    def names(self, acc: StickAccess) -> list[str]:
        """Return the dimensions of an access, in the order of the space."""
        return [n for n in self.extents if n in acc.strides]


def lane_step(acc: StickAccess, axis: Sub, lanes: int) -> int:
    """Return the elements of memory per step of an axis, in a buffer of `lanes` elements per stick."""
    name, weight = axis
    stride = acc.strides.get(name, 0) * lanes
    if acc.lane != name:
        return stride * weight
    return stride * (weight // lanes) if weight >= lanes else weight


@dataclass(frozen=True)
class WalkedOperand:
    """One operand of a kernel op: a buffer and its access.

    Attributes:
        buffer: its memory.
        access: the sticks and lanes that each point of the loops reads or writes.
        grid: the loops, as axes of arrays.
        op: the kernel.
        name: in messages: "input 0", "the output".
    """

    buffer: DeviceBuffer
    access: StickAccess
    grid: Grid
    op: KernelOp
    name: str

    @property
    def own_axes(self) -> list[Sub]:
        """The axes of its access."""
        return self.grid.of_names(self.grid.names(self.access))

    def view(self, data: Array, axes: Sequence[Sub]) -> Array:
        """Return the accessed view of `data` (values or states), one axis each; other axes repeat.

        Raises:
            MachineFault: the walk leaves the buffer, or the buffer was freed.
        """
        if self.buffer.dead:
            raise fault(FaultKind.USE_AFTER_FREE, f"{self.name} was freed", self.op, tensor=self.name)
        lanes = self.buffer.tensor.lanes
        try:
            return strided(
                data.reshape(-1),
                self.access.offset * lanes,
                self.grid.shape(axes),
                [lane_step(self.access, a, lanes) for a in axes],
            )
        except IndexError as error:
            raise fault(
                FaultKind.OUT_OF_BOUNDS,
                f"{self.name}: {error}",
                self.op,
                hint="reserve whole sticks in the layout of this tensor",
                tensor=self.name,
            ) from error

    def values(self, axes: Sequence[Sub]) -> Array:
        """Return the elements along axes."""
        element = self.op.rounds_to
        values = self.view(self.buffer.values, axes)
        return values if element is None or self.is_output else operands_as(values, str(element))

    @property
    def is_output(self) -> bool:
        """Return whether the op writes it."""
        return self.name == _OUTPUT

    def initialised(self, axes: Sequence[Sub]) -> Mask:
        """Return the states along axes."""
        return self.view(self.buffer.initialised, axes)


def operands_of(op: KernelOp, args: Sequence[object]) -> list[WalkedOperand]:
    """Return the operands of an op, the output last."""
    grid = Grid.of(op)
    names = [*(f"input {n}" for n in range(len(op.inputs))), _OUTPUT]
    return [
        WalkedOperand(cast(DeviceBuffer, b), a, grid, op, w) for b, a, w in zip(args, op.accesses(), names, strict=True)
    ]


def write(out: WalkedOperand, values: Array, initialised: Mask, *, copies: bool) -> None:
    """Write values and states along the output's axes.

    Raises:
        MachineFault: arithmetic leaves lane 0 of a stick poisoned.
    """
    axes = out.own_axes
    if not copies:
        _check_first_lanes(out, axes, initialised)
    states, element = out.initialised(axes), out.op.rounds_to
    values = values if element is None else as_eager(values, str(element))
    target = out.values(axes)
    target[...] = np.where(initialised, values.astype(target.dtype), np.nan)
    states[...] = initialised


def _check_first_lanes(out: WalkedOperand, axes: Sequence[Sub], initialised: Mask) -> None:
    lanes = out.buffer.tensor.lanes
    inside = [name == out.access.lane and weight < lanes for name, weight in axes]
    first = initialised[tuple(slice(0, 1) if i else slice(None) for i in inside)]
    if first.all():
        return
    at = dict.fromkeys((name for name, _ in axes), 0)
    for (name, weight), index in zip(axes, first_index(~first), strict=True):
        at[name] += weight * index
    where = ", ".join(f"{name} = {index}" for name, index in at.items())
    raise fault(
        FaultKind.UNINITIALISED_READ,
        f"{out.op.function_name} computes element [{where}] from lanes that were never written",
        out.op,
        hint="fill the padding of the operands with zeros, or write them first",
        tensor="the output",
    )


def check_every_point_kept(op: KernelOp, out: WalkedOperand) -> None:
    """Raise MachineFault if one element is written more than once."""
    lost = [n for n, e in op.space.extents.items() if e > 1 and n not in out.access.strides]
    if lost:
        message = f"{op.function_name} writes the same element for every {', '.join(lost)}"
        raise fault(FaultKind.DOUBLE_WRITE, message, op)
