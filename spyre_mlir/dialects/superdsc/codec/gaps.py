"""Elements that are allocated but not used: the back gaps of an operand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spyre_mlir.dialects.superdsc.codec.coordinate_rules import own_splits
from spyre_mlir.dialects.superdsc.model import keys
from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor, Dim, Operand
from spyre_mlir.ops.hardware_functions import restickifies


def back_gaps(descriptor: Descriptor, operand: Operand) -> dict[str, int]:
    """Return elements allocated beyond the used ones, per dim where there are any; whole sticks along the stick dim."""
    gaps: dict[str, int] = {}
    lanes = operand.stick_lanes
    for label, count in zip(operand.order, operand.counts(), strict=True):
        if any(window.dim == label for window in descriptor.windows):
            continue
        dim = descriptor.dim(label)
        split = own_splits(operand).get(label, 1) if operand.slices else dim.split
        used = dim.extent // split if operand.component == keys.LX else dim.extent
        gap = (count + used // -lanes[label]) * lanes[label] if label in lanes else count - used
        if gap:
            gaps[label] = gap
    return gaps


def unclear_gaps(function: str, dims: Sequence[Dim], operands: Sequence[Operand]) -> Iterator[tuple[int, str, int]]:
    """Yield operand number, dim and elements of each gap that may also be a shortfall; the file does not tell.

    Only a restickify has shortfalls: of a dim that is padded because it is the other operand's stick. They are less
    than a stick, so whole sticks are gaps, and so is whatever is allocated beyond a dim that is no operand's stick.
    """
    sticks = {operand.stick for operand in operands if operand.stick is not None}
    if len(sticks) < 2 or not restickifies(function):
        return
    sizes = {dim.label: dim for dim in dims}
    for number, operand in enumerate(operands):
        for label, extent in zip(operand.order, operand.extents, strict=True):
            if label in sticks:
                used = sizes[label].per_core if operand.component == keys.LX else sizes[label].extent
                if (extent - used) % operand.elements_per_stick:
                    yield number, label, extent - used
