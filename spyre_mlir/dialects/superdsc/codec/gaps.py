"""Elements that are allocated but not used: the back gaps of an operand."""

from __future__ import annotations

from spyre_mlir.dialects.superdsc.codec.coordinate_rules import own_splits
from spyre_mlir.dialects.superdsc.model import keys
from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor, Operand


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
