"""What one core works on, as the rules of single cores see it."""

from __future__ import annotations

from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor
from spyre_mlir.machine.memory.exact import Memory
from spyre_mlir.machine.memory.operand_views import OperandLayout
from spyre_mlir.machine.superdsc.core_rules.per_core import CoreWork


def work_of(view: Descriptor, memory: Memory, core: int = 0) -> CoreWork:
    """The work of one core of an operation."""
    origin = tuple(view.core_slices[core][dim.label] * dim.per_core for dim in view.dims)
    accesses = tuple(OperandLayout(view, index, memory).core(core) for index in range(len(view.operands)))
    return CoreWork(view, core, origin, accesses, memory)
