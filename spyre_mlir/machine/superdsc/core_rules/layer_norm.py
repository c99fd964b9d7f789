"""Functions of a layer norm on the device, and the scale of a quantised row.

`exx2` leaves two moments in one stick. In which lanes is not public: the machine puts E[x] in the first and E[x*x] in
the second, where its own `layernormscale` finds them. The first is what `layernormnorm` reads as the mean.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.machine.memory.exact import Bools, Floats
from spyre_mlir.machine.memory.operand_views import ByteAccess, TrackedArray
from spyre_mlir.machine.superdsc.core_rules.per_core import CoreWork, require_whole
from spyre_mlir.machine.superdsc.poison import folded_written, require_lane_zero


def _second(access: ByteAccess) -> ByteAccess:
    """The lanes next to the first ones of a sparse operand."""
    return replace(access, base=access.base + access.word_bytes)


def _sparse(work: CoreWork, index: int) -> None:
    if work.view.operands[index].stick is not None:
        where = str(work.accesses[index].place)
        raise UnsupportedError("moments that are not in a stick per row", where=where)


def _folded_axes(work: CoreWork) -> tuple[int, ...]:
    lacked = [dim.label for dim in work.view.dims if dim.label not in work.view.output.order]
    require_whole(work.view, lacked, work.view.op_func_name)
    return tuple(work.axis(label) for label in lacked)


def exx2(work: CoreWork) -> list[tuple[ByteAccess, TrackedArray]]:
    """Return both moments of every row, times `exx2scale`."""
    (scale,) = work.constants("exx2scale")
    output = len(work.accesses) - 1
    _sparse(work, output)
    axes, x, target = _folded_axes(work), work.read(0), work.accesses[output]
    require_lane_zero(work.view, 0, work.accesses[0], x, work.memory.log)
    written = folded_written(work.view, x, axes, work.accesses[0], work.memory.log)
    first, second = (np.sum(power, axis=axes, keepdims=True) * scale for power in (x.values, x.values**2))
    return [(target, TrackedArray(first, written)), (_second(target), TrackedArray(second, written))]


def layernormscale(work: CoreWork) -> list[tuple[ByteAccess, TrackedArray]]:
    """Return 1 / sqrt(E[x*x] - E[x]^2 + eps)."""
    (eps,) = work.constants("eps")
    _sparse(work, 0)
    mean = work.accesses[0].read(work.memory)
    square = _second(work.accesses[0]).read(work.memory)
    with np.errstate(all="ignore"):
        values: Floats = 1 / np.sqrt(square.values - mean.values**2 + eps)
    known = [t.written for t in (mean, square) if t.written is not None]
    written: Bools | None = np.logical_and.reduce(known) if known else None
    require_lane_zero(work.view, 0, work.accesses[0], TrackedArray(values, written), work.memory.log)
    return [(work.accesses[-1], TrackedArray(values, written))]


def quantscale(work: CoreWork) -> list[tuple[ByteAccess, TrackedArray]]:
    """Return the largest magnitude of every row, between `clipMin` and `clipMax`, times `mulConst`."""
    low, high, factor = work.constants("clipMin", "clipMax", "mulConst")
    axes, x = _folded_axes(work), work.read(0)
    written = folded_written(work.view, x, axes, work.accesses[0], work.memory.log)
    largest = np.max(np.abs(x.values), axis=axes, keepdims=True)
    return [(work.accesses[-1], TrackedArray(np.clip(largest, low, high) * factor, written))]
