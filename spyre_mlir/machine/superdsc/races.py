"""Conflicts between the memory accesses of cores that run at the same time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from spyre_mlir.machine.faults import FaultKind, FaultLog, Place, fault
from spyre_mlir.machine.memory.exact import Ints
from spyre_mlir.machine.memory.operand_views import ByteAccess
from spyre_mlir.machine.memory.shadow import STICK


def require_disjoint(accesses: Sequence[ByteAccess], log: FaultLog) -> None:
    """Refuse two cores, not of one cohort, that write the same byte.

    Args:
        accesses: the output of each cohort.
        log: takes the fault.

    Raises:
        MachineFault: ``double-write``.
    """
    everything = np.concatenate([access.addresses().reshape(-1) for access in accesses])
    owners = np.repeat(np.arange(len(accesses)), [int(np.prod(access.visible)) for access in accesses])
    order = np.argsort(everything, kind="stable")
    twice = np.flatnonzero(np.diff(everything[order]) < accesses[0].word_bytes)
    if not twice.size:
        return
    at = int(twice[0])
    one, other = accesses[int(owners[order[at]])].place, accesses[int(owners[order[at + 1]])].place
    address = int(everything[order[at + 1]])
    place = Place(op=other.op, tensor=other.tensor, core=other.core, low=address, high=address + accesses[0].word_bytes)
    message = f"cores {one.core} and {other.core} both write {len(twice)} elements"
    log.meet(fault(FaultKind.DOUBLE_WRITE, message, place))


def require_no_race(
    tiles: Sequence[Sequence[ByteAccess]],
    log: FaultLog,
    by_core: Callable[[], Sequence[Sequence[ByteAccess]]] | None = None,
) -> None:
    """Refuse an operation that reads a byte it also writes, unless each element is read only to compute itself.

    Which of the two happens first is not defined, even on one core, because operands are streamed.

    Args:
        tiles: per core (or for all cores together) one access per operand, the output last.
        log: takes the fault.
        by_core: gives the accesses per core, to name the cores of a race.

    Raises:
        MachineFault: ``read-write-race``.
    """
    writes = [tile[-1] for tile in tiles]
    for operand in range(len(tiles[0]) - 1):
        reads = [tile[operand] for tile in tiles]
        if all(_in_place(r, w) for r, w in zip(reads, writes, strict=True)) or not _share_sticks(reads, writes):
            continue
        unit = min(reads[0].word_bytes, writes[0].word_bytes)
        shared = np.intersect1d(_slots(reads, unit), _slots(writes, unit))
        if shared.size:
            low, own = int(shared[0]) * unit, tiles if by_core is None else by_core()
            reader, writer = _core_at([tile[operand] for tile in own], low), _core_at([tile[-1] for tile in own], low)
            target = writes[0].place
            place = Place(op=target.op, tensor=target.tensor, core=writer, low=low, high=low + unit)
            message = f"{shared.size * unit} bytes are read and written by one operation; the first, of "
            message += f"{reads[0].place.tensor}, core {reader} reads and core {writer} writes"
            hint = "give the output a buffer of its own"
            log.meet(fault(FaultKind.READ_WRITE_RACE, message, place, hint=hint))


def _core_at(accesses: Sequence[ByteAccess], address: int) -> int | None:
    """The first core whose access touches a byte."""
    return next((access.place.core for access in accesses if access.touches(address)), None)


def _share_sticks(reads: Sequence[ByteAccess], writes: Sequence[ByteAccess]) -> bool:
    """Return whether a stick is touched by both."""
    low = max(min(r.low for r in reads), min(w.low for w in writes)) // STICK
    high = -(-min(max(r.high for r in reads), max(w.high for w in writes)) // STICK)
    if high <= low:
        return False
    first = min(access.low for access in (*reads, *writes)) // STICK
    last = -(-max(access.high for access in (*reads, *writes)) // STICK)
    touched = np.zeros(last - first, dtype=np.bool_)
    for access in reads:
        access.sticks_in(touched, first)[...] = True
    return any(bool(access.sticks_in(touched, first)[...].any()) for access in writes)


def _in_place(read: ByteAccess, write: ByteAccess) -> bool:
    return (read.base, read.axes, read.word_bytes) == (write.base, write.axes, write.word_bytes)


def _slots(accesses: Sequence[ByteAccess], unit: int) -> Ints:
    """Every run of `unit` bytes that the accesses touch, by number."""
    firsts = np.concatenate([access.addresses().reshape(-1) for access in accesses]) // unit
    return np.concatenate([firsts + extra for extra in range(accesses[0].word_bytes // unit)])
