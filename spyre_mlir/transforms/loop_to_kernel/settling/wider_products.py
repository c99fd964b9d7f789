"""Products with the columns that the text notes, where no number of cores divides those that they have.

Cores take equal slices of whole sticks. Of 25 sticks four or eight cores cannot have equally many, so all cores divide
rows, and each reads the whole weight, or they divide the sum, which keeps half of a core busy. With three sticks more,
which the host fills with zeros, four cores have seven each. The columns that are added have no readers but functions
that compute them element by element, so that these are divided like the product. These go on as long as one number is
known to be in all added columns: with numbers of a call, as the largest of a row, results that nothing reads could be
beyond DLFloat16, and the call would warn of them.

Decision: docs/decisions/0250-columns-that-cores-share.md
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
from xdsl.dialects.builtin import FloatAttr, IntegerAttr

from spyre_mlir.dialects.spyre.attributes import IterDim
from spyre_mlir.dialects.spyre.loop import PADDED
from spyre_mlir.hw.formats import DL16, DL16_LARGEST
from spyre_mlir.hw.sticks import LinearExpr
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.native import contractions
from spyre_mlir.ops.table import Family, OpEntry
from spyre_mlir.transforms.loop_to_kernel.buffers import PlannedBuffer, PlannedKernel, Use
from spyre_mlir.transforms.loop_to_kernel.layout_planner import LayoutPlanner


class _Added(NamedTuple):
    """How many columns a buffer has, those without readers among them, and the number in these."""

    columns: int
    number: float


def widen(p: LayoutPlanner, kept: Collection[PlannedBuffer | None]) -> bool:
    """Give products of a settled plan the columns that are noted; return whether any has changed.

    Args:
        p: the plan.
        kept: buffers that leave the program as they lie, so that they have no room.
    """
    wide = dict[PlannedBuffer, _Added]()
    for at, step in enumerate(p.items):
        if not isinstance(step, PlannedKernel) or step.integers or step.output[0] in kept:
            continue
        function = ATEN.by_opfunc(step.function)
        noted = _noted(step)
        columns = noted or _followed(step, function, wide)
        loop = _columns_of(p, step, columns, wide) if columns else None
        if loop is None:
            continue
        numbers = [_number(use, loop.name, wide) for use in step.inputs]
        number = 0.0 if noted or function is None else _made(function, step.constants, numbers)
        if number is not None:
            p.items[at], wide[step.output[0]] = _widened(step, loop.name, columns), _Added(columns, number)
    return bool(wide)


def _noted(step: PlannedKernel) -> int:
    """The columns that a product is to have; 0 for none."""
    note = None if step.origin is None else step.origin.attributes.get(PADDED)
    is_product = step.function == contractions.matmul.opfunc
    return note.value.data if isinstance(note, IntegerAttr) and is_product else 0


def _followed(step: PlannedKernel, function: OpEntry | None, wide: dict[PlannedBuffer, _Added]) -> int:
    """The columns of what a function of single elements reads; 0 for another step."""
    if function is None or function.family is not Family.POINTWISE:
        return 0
    return max((wide[buffer].columns for buffer, _ in step.inputs if buffer in wide), default=0)


def _made(function: OpEntry, constants: dict[str, float], numbers: Sequence[float | None]) -> float | None:
    """What a function makes of numbers; None if one is not known, or DLFloat16 has no such result."""
    if None in numbers:
        return None
    with np.errstate(all="ignore"):
        made = float(function.meaning(*np.array(numbers), **function.numbers(constants)))
    return made if isfinite(made) and abs(made) <= DL16_LARGEST else None


def _number(use: Use, loop: str, wide: dict[PlannedBuffer, _Added]) -> float | None:
    """The number in the added columns of an operand that has them, or of a constant; None for numbers of a call."""
    buffer, index = use
    if any(name == loop for e in index for name, _ in e.terms):
        return wide[buffer].number if buffer in wide else 0.0
    constant: Any = buffer.constant
    return constant.value.data if isinstance(constant, FloatAttr) else None


def _columns_of(
    p: LayoutPlanner, step: PlannedKernel, columns: int, wide: dict[PlannedBuffer, _Added]
) -> IterDim | None:
    """The loop over columns of a step whose operands all can have more of them; None if one cannot."""
    made, written = step.output
    if made.layout.stick >= len(written):
        return None
    loop = next((d for d in step.space if written[made.layout.stick] == LinearExpr.of(d.name)), None)
    if loop is None or loop.extent >= columns or loop.extent % made.lanes:
        return None
    walked = [use for use in step.inputs if any(n == loop.name for e in use[1] for n, _ in e.terms)]
    ready = all(wide[b].columns == columns if b in wide else _is_sent(p, b) for b, _ in walked)
    is_wide = len(walked) == 1 if step.function == contractions.matmul.opfunc else bool(walked)
    room = all(_has_room(use, loop, columns) for use in (*walked, step.output))
    return loop if ready and is_wide and room else None


def _is_sent(p: LayoutPlanner, buffer: PlannedBuffer) -> bool:
    """Whether the host sends a buffer ahead of calls, so that it can put zeros behind it."""
    host = buffer.host
    return host is not None and p.hosts.get(host, False) and host not in p.written


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
