"""Attribution of a fault to a core, where all cores of an operation run as one and only an address is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from spyre_mlir.errors import FaultPlace, MachineFault
from spyre_mlir.machine.faults import FaultKind
from spyre_mlir.machine.memory.exact import Memory
from spyre_mlir.machine.memory.operand_views import ByteAccess, OperandLayout


def settled(found: MachineFault, layouts: Sequence[OperandLayout], memory: Memory) -> FaultPlace:
    """Return a fault's place with the first core that touches its first byte, if one of the operation does.

    Out of bounds is the first core that is, with its own bytes.
    """
    place = found.place
    for layout in layouts:
        cores = range(layout.view.cores)
        accesses = [layout.core(core) for core in cores] if layout.core(0).place.tensor == place.tensor else []
        for access in accesses:
            if access.place.op != place.op or place.low is None:
                continue
            if found.kind == FaultKind.OUT_OF_BOUNDS.value:
                if not _inside(access, memory):
                    return replace(place, core=access.place.core, low=access.low, high=access.high)
            elif access.touches(place.low):
                return replace(place, core=access.place.core, high=min(place.high or access.high, access.high))
    return place


def _inside(access: ByteAccess, memory: Memory) -> bool:
    try:
        memory.locate(access.low, access.high)
    except MachineFault:
        return False
    return True
