"""Contents of padding, one known number or any finite number, and what functions make of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, isnan

import numpy as np

from spyre_mlir.ops.native import pointwise, reductions
from spyre_mlir.ops.table import OpEntry

# None is any finite number.
Content = float | None

# A mask's number, or less: below whatever it is added to or compared with. Half of float16's least number.
MASK = -32752.0

# What a reduction may take in without a change.
_NEUTRAL: dict[str, tuple[float, float]] = {
    reductions.sum.name: (0.0, 0.0),
    reductions.amax.name: (-inf, MASK),
    reductions.amin.name: (-MASK, inf),
}


def applied(entry: OpEntry | None, operands: Sequence[Content], numbers: Mapping[str, float]) -> Content:
    """Return what a function makes of padding; a function that is None copies.

    Args:
        entry: of one result.
        operands: contents of its operands, in order.
        numbers: its other arguments.
    """
    if entry is None:
        return operands[0]
    known = [n for n in operands if n is not None]
    if entry is pointwise.where:
        condition, yes, no = operands
        if condition is None:
            return yes if yes == no else None
        return yes if condition else no
    if len(known) == len(operands):
        with np.errstate(all="ignore"):
            value = float(entry.meaning(*map(np.float64, known), **numbers))
        return None if isnan(value) else value
    if entry in (pointwise.mul, pointwise.div) and operands[0] == 0.0:
        return 0.0
    if entry is pointwise.mul and 0.0 in known:
        return 0.0
    if entry is pointwise.add and any(n <= MASK for n in known):
        return -inf
    if entry is pointwise.sub and operands[0] is not None and operands[0] <= MASK:
        return -inf
    return None


def is_neutral(reduction: OpEntry, content: Content) -> bool:
    """Return whether a reduction takes in any number of such elements without a change of its result."""
    least, most = _NEUTRAL.get(reduction.name, (inf, -inf))
    return content is not None and least <= content <= most


def reduced(reduction: OpEntry, content: Content) -> Content:
    """Return what a reduction makes of rows whose elements all are such; their number is any."""
    return content if is_neutral(reduction, content) else None
