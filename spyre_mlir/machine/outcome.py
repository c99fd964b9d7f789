"""What is said about an operation's results: how many were too large, and where NaN came up."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import numpy as np

from spyre_mlir.dialects.superdsc.descriptor import Descriptor
from spyre_mlir.machine.compute import Tile, fetch
from spyre_mlir.machine.device_memory import DeviceMemory
from spyre_mlir.machine.faults import FaultKind, fault
from spyre_mlir.machine.memory import Memory
from spyre_mlir.machine.opfuncs import Contraction, Meaning, Pointwise, Reduction

# Functions whose result has one right value in any arithmetic wide enough: they choose, negate, or round once.
_EXACT = frozenset(
    {"add", "sub", "mul", "realdiv", "maximum", "minimum", "neg", "abs", "relu", "where3", "sqrt", "reciprocal"}
)


@contextmanager
def counted(view: Descriptor, meaning: Meaning, memory: Memory) -> Generator[None]:
    """Add what is rounded inside to the log's count of overflows, and note the settings that matter."""
    if not isinstance(memory, DeviceMemory):
        yield
        return
    before = memory.tally.overflows
    yield
    met, name, log = memory.tally.overflows - before, f"{view.index}:{view.op_func_name}", memory.log
    sums = isinstance(meaning, (Reduction, Contraction))
    if met:
        log.overflows[name] = log.overflows.get(name, 0) + met
        log.depends.setdefault("overflow", set()).add(name)
    if sums or (isinstance(meaning, Pointwise) and view.op_func not in _EXACT):
        log.depends.setdefault("arithmetic", set()).add(name)
    if sums and any(dim.split > 1 and dim.label not in view.output.order for dim in view.dims):
        log.depends.setdefault("partial_sums", set()).add(name)


def require_numbers(view: Descriptor, tile: Tile, memory: Memory) -> None:
    """Refuse a result that is infinite or NaN where no operand is, if the run asked for that.

    Raises:
        MachineFault: ``nan-born``.
    """
    if not memory.nan_is_a_fault:
        return
    last = len(tile.accesses) - 1
    result = tile.frame.joined(fetch(tile, last, memory).values)
    if np.isfinite(result).all():
        return
    for index in range(last):
        if not np.isfinite(fetch(tile, index, memory).values).all():
            return
    at = [int(i) for i in np.argwhere(~np.isfinite(result))[0]]
    message = f"{int((~np.isfinite(result)).sum())} results are infinite or NaN, and no operand is"
    place = tile.accesses[last].place_at(at)
    memory.log.meet(fault(FaultKind.NAN_BORN, message, place, hint="look for a division by zero, or a logarithm"))
