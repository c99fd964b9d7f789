"""The memory of a run, by its options."""

from __future__ import annotations

from spyre_mlir.hw.spec import SPYRE, SpyreSpec
from spyre_mlir.machine.faults import FaultLog
from spyre_mlir.machine.memory.device_numerics import DeviceMemory
from spyre_mlir.machine.memory.exact import ExactMemory, Memory
from spyre_mlir.machine.memory.plain import PlainMemory
from spyre_mlir.machine.options import MachineOptions


def memory_for(options: MachineOptions, spec: SpyreSpec = SPYRE) -> Memory:
    """Make empty memory of the numerics that a run asks for."""
    match options.numerics:
        case "exact":
            memory = ExactMemory(spec)
        case "device":
            memory = DeviceMemory(spec, options)
        case "none":
            memory = PlainMemory(spec)
    memory.log = FaultLog(options.on_fault)
    memory.nan_is_a_fault = options.nan == "fault"
    return memory
