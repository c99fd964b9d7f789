"""The k largest elements of a dim, and their positions.

The input has the dim that is searched, the output has a dim of k in its place; neither is in a stick, and one core has
all of both (torch-spyre work division; likely). Equal values come in the order of their places.
"""

from __future__ import annotations

import numpy as np

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.machine.memory.operand_views import ByteAccess, TrackedArray
from spyre_mlir.machine.superdsc.core_rules.per_core import CoreWork, require_whole
from spyre_mlir.machine.superdsc.poison import folded_written


def _select(work: CoreWork, *, positions: bool) -> list[tuple[ByteAccess, TrackedArray]]:
    view = work.view
    source, target = view.operands[0].order, view.output.order
    searched = [label for label in source if label not in target]
    kept = [label for label in target if label not in source]
    where = str(work.accesses[-1].place)
    if len(searched) != 1 or len(kept) != 1:
        raise UnsupportedError(f"{view.op_func} from dims {list(source)} to {list(target)}", where=where)
    for operand, label in ((view.operands[0], searched[0]), (view.output, kept[0])):
        if operand.stick == label:
            raise UnsupportedError(f"{view.op_func} with dim {label} in the stick", where=where)
    require_whole(view, [*searched, *kept], view.op_func)
    axis, out, count = work.axis(searched[0]), work.axis(kept[0]), view.dim(kept[0]).extent
    if count > view.dim(searched[0]).extent:
        raise UnsupportedError(f"{count} of {view.dim(searched[0]).extent} elements", where=where)
    tensor = work.read(0)
    written = folded_written(view, tensor, (axis,), work.accesses[0], work.memory.log)
    order = np.argsort(-tensor.values, axis=axis, kind="stable")
    chosen = np.take(order, range(count), axis=axis)
    values = chosen.astype(np.float64) if positions else np.take_along_axis(tensor.values, chosen, axis=axis)
    # The input has one place along k, and the result is to have one along what was searched.
    return [(work.accesses[-1], TrackedArray(np.swapaxes(values, axis, out), written))]


def topkvalue(work: CoreWork) -> list[tuple[ByteAccess, TrackedArray]]:
    """Return the values, in descending order."""
    return _select(work, positions=False)


def topkindex(work: CoreWork) -> list[tuple[ByteAccess, TrackedArray]]:
    """Return their positions."""
    return _select(work, positions=True)
