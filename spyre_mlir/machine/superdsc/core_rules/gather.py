"""Table rows selected by an index tensor.

The table's picked dim is its outermost device dim, and the iteration dims of the index tensor stand in its place, so
the address of an element is that of row zero plus index times the bytes of one row. Published as code only; likely.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from spyre_mlir.dialects.superdsc.model import keys
from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor, IndirectKind, Operand
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.hw.spec import STICK_BYTES
from spyre_mlir.machine.faults import FaultKind, FaultLog, fault
from spyre_mlir.machine.memory.exact import Ints, Memory
from spyre_mlir.machine.memory.operand_views import ByteAccess, OperandLayout, TrackedArray


def share_table(layout: OperandLayout, log: FaultLog) -> None:
    """Give all cores of a gather the table of core 0: the address computation from an index has one start only.

    Raises:
        MachineFault: ``divided-table``: the file wants another start on some core, or a part of the rows on each.
    """
    table, view = layout.operand, layout.view
    if table.component == keys.LX or table.indirect is None or table.indirect.kind is not IndirectKind.VALUE:
        return
    hint = "divide the indices, in whole sticks, or use fewer cores"
    if (core := int((layout.starts != layout.starts[0]).argmax())) > 0:
        message = f"core {core} starts its table at {int(layout.starts[core]):#x}, core 0 at {int(layout.starts[0]):#x}"
        low, high = int(layout.starts[core]), int(layout.starts[core]) + STICK_BYTES
        place = replace(layout.place, core=core, low=low, high=high)
        log.meet(fault(FaultKind.DIVIDED_TABLE, f"{message}; all cores use one start", place, hint=hint))
        layout.starts = np.full_like(layout.starts, layout.starts[0])
        return
    for dim in view.dims:
        if dim.split > 1 and dim.label in layout.labels:
            message = f"dim {dim.label} along the rows of the table is divided; every core reads its first slice"
            log.meet(fault(FaultKind.DIVIDED_TABLE, message, layout.place, hint=hint))


def gather(view: Descriptor, accesses: Sequence[ByteAccess], origin: Sequence[int], memory: Memory) -> TrackedArray:
    """Read the selected rows of one tile.

    Args:
        view: the descriptor.
        accesses: one per operand.
        origin: first global index per iteration dim.
        memory: where the table is.

    Raises:
        MachineFault: an index was never written, or names a row outside the table.
        UnsupportedError: a form of gather the machine has no rule for.
    """
    value_at, index_at = _roles(view)
    table, access = view.operands[value_at], accesses[value_at]
    rows = _indices(view, index_at, accesses[index_at], memory)
    picked = set(view.operands[index_at].order)
    row_bytes = _row_bytes(table, picked, str(access.place))
    if any(dim.label in picked and n != 1 for dim, n in zip(view.dims, access.shape, strict=True)):
        raise UnsupportedError("a gather from a table in LX, each core with rows of its own", where=str(access.place))
    region = memory.locate(access.low, access.high, access.place)
    extent = (region.end - access.base) // row_bytes
    outside = (rows < 0) | (rows >= extent)
    if outside.any():
        at = np.unravel_index(int(outside.argmax()), rows.shape)
        position = {d.label: int(i) + o for d, i, o in zip(view.dims, at, origin, strict=True) if d.label in picked}
        message = f"index {int(rows[at])} at {position} is outside a table of {extent} rows"
        raise fault(FaultKind.INDEX_OUT_OF_RANGE, message, accesses[index_at].place)
    values, written = memory.load(access.addresses() + rows * row_bytes, table.format)
    return TrackedArray(values, None if written.all() else written)


def _roles(view: Descriptor) -> tuple[int, int]:
    kinds = [op.indirect.kind if op.indirect is not None else None for op in view.operands]
    if kinds.count(IndirectKind.VALUE) != 1 or kinds.count(IndirectKind.INDEX) != 1:
        raise UnsupportedError(f"op {view.index}: a gather with {kinds.count(IndirectKind.INDEX)} index tensors")
    return kinds.index(IndirectKind.VALUE), kinds.index(IndirectKind.INDEX)


def _indices(view: Descriptor, index_at: int, access: ByteAccess, memory: Memory) -> Ints:
    if view.operands[index_at].component == keys.LX:
        raise UnsupportedError("index tensors live in HBM", where=str(access.place))
    tensor = access.read(memory)
    if tensor.written is not None and not tensor.written.all():
        first = np.unravel_index(int((~tensor.written).argmax()), tensor.written.shape)
        place = access.place_at([int(i) for i in first])
        raise fault(FaultKind.UNINITIALISED_READ, "an index was never written", place)
    return tensor.values.astype(np.int64)


def _row_bytes(table: Operand, picked: set[str], where: str) -> int:
    """Bytes from one row of the table to the next."""
    first = min((place for place, label in enumerate(table.order) if label in picked), default=-1)
    if first < 0 or not all(label in picked for label in table.order[first:]):
        message = f"a gather whose table order {list(table.order)} does not end with the index dims {sorted(picked)}"
        raise UnsupportedError(message, where=where, hint="make the gathered dim the outermost device dim")
    if max(table.indirect.max_sizes if table.indirect is not None else (), default=-1) > 1:
        raise UnsupportedError("a paged gather", where=where)
    return prod(table.counts()[:first]) * STICK_BYTES
