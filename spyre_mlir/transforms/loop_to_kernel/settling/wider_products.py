"""Products with the columns that the text notes, where no number of cores divides those that they have.

Cores take equal slices of whole sticks. Of 25 sticks four or eight cores cannot have equally many, so all cores divide
rows, and each reads the whole weight, or they divide the sum, which keeps half of a core busy. With three sticks more,
which the host fills with zeros, four cores have seven each. The columns that are added have no readers but functions
that compute them element by element, so that these are divided like the product.

Decision: docs/decisions/0250-columns-that-cores-share.md
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from xdsl.dialects.builtin import IntegerAttr

from spyre_mlir.dialects.spyre.attributes import IterDim
from spyre_mlir.dialects.spyre.loop import PADDED
from spyre_mlir.hw.formats import DL16
from spyre_mlir.hw.sticks import LinearExpr
from spyre_mlir.ops.function_facts import Group
from spyre_mlir.ops.hardware_functions import function_of
from spyre_mlir.ops.native import contractions
from spyre_mlir.transforms.loop_to_kernel.buffers import PlannedBuffer, PlannedKernel, Use
from spyre_mlir.transforms.loop_to_kernel.layout_planner import LayoutPlanner


def widen(p: LayoutPlanner, kept: Collection[PlannedBuffer | None]) -> bool:
    """Give products of a settled plan the columns that are noted; return whether any has changed.

    Args:
        p: the plan.
        kept: buffers that leave the program as they lie, so that they have no room.
    """
    wide = dict[PlannedBuffer, int]()
    for at, step in enumerate(p.items):
        if not isinstance(step, PlannedKernel) or step.integers or step.output[0] in kept:
            continue
        columns = _noted(step) or _followed(step, wide)
        loop = _columns_of(p, step, columns, wide) if columns else None
        if loop is not None:
            p.items[at], wide[step.output[0]] = _widened(step, loop.name, columns), columns
    return bool(wide)


def _noted(step: PlannedKernel) -> int:
    """The columns that a product is to have; 0 for none."""
    note = None if step.origin is None else step.origin.attributes.get(PADDED)
    is_product = step.function == contractions.matmul.opfunc
    return note.value.data if isinstance(note, IntegerAttr) and is_product else 0


def _followed(step: PlannedKernel, wide: dict[PlannedBuffer, int]) -> int:
    """The columns of what a function of single elements reads; 0 for another step, and where zeros are no argument."""
    function = function_of(step.function)
    if function is None or function.group is not Group.ELEMENTWISE or function.pole:
        return 0
    return max((wide.get(buffer, 0) for buffer, _ in step.inputs), default=0)


def _columns_of(p: LayoutPlanner, step: PlannedKernel, columns: int, wide: dict[PlannedBuffer, int]) -> IterDim | None:
    """The loop over columns of a step whose operands all can have more of them; None if one cannot."""
    made, written = step.output
    if made.layout.stick >= len(written):
        return None
    loop = next((d for d in step.space if written[made.layout.stick] == LinearExpr.of(d.name)), None)
    if loop is None or loop.extent >= columns or loop.extent % made.lanes:
        return None
    walked = [use for use in step.inputs if any(n == loop.name for e in use[1] for n, _ in e.terms)]
    ready = all(wide.get(b) == columns or _is_sent(p, b) for b, _ in walked)
    is_wide = len(walked) == 1 if step.function == contractions.matmul.opfunc else bool(walked)
    room = all(_has_room(use, loop, columns) for use in (*walked, step.output))
    return loop if ready and is_wide and room else None


def _is_sent(p: LayoutPlanner, buffer: PlannedBuffer) -> bool:
    """Whether the host sends a buffer ahead of calls, so that it can put zeros behind it."""
    host = buffer.host
    return buffer.constant is not None or (host is not None and p.hosts.get(host, False) and host not in p.written)


def _has_room(use: Use, loop: IterDim, columns: int) -> bool:
    """Whether a loop alone walks all of one dimension of an operand, which may get so many columns."""
    buffer, index = use
    dims = [d for d, e in enumerate(index) if any(n == loop.name for n, _ in e.terms)]
    if len(dims) != 1 or index[dims[0]] != LinearExpr.of(loop.name) or buffer.format != DL16.name:
        return False
    return buffer.shape[dims[0]] == loop.extent and buffer.has_room(dims[0], 1, columns)


def _widened(step: PlannedKernel, loop: str, columns: int) -> PlannedKernel:
    """The step on so many columns; tensors that the host prepares have zeros behind those of the model."""
    for buffer, index in (*step.inputs, step.output):
        for dim in [d for d, e in enumerate(index) if e == LinearExpr.of(loop)]:
            buffer.reserve(dim, columns)
    return replace(step, space=tuple(replace(d, extent=columns) if d.name == loop else d for d in step.space))


__all__ = ["widen"]
