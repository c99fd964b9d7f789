"""Contents of padding, one known number or any finite number, and what functions make of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spyre_mlir.ops.native import pointwise, reductions
from spyre_mlir.ops.table import OpEntry

# None is any finite number.
Content = float | None

# What an operand is where a loop is in the padding: its content, or the numbers of a constant without this loop.
Operand = Content | NDArray[Any]

# The least and the largest number of a value.
Limits = tuple[float, float]

# A mask's number, or less: below whatever it is added to or compared with. Half of float16's least number.
MASK = -32752.0

# What a reduction may take in without a change.
_NEUTRAL: dict[str, tuple[float, float]] = {
    reductions.sum.name: (0.0, 0.0),
    reductions.amax.name: (-inf, MASK),
    reductions.amin.name: (-MASK, inf),
}

# Reductions to one of the elements.
EXTREMES = (reductions.amax, reductions.amin)


def applied(entry: OpEntry | None, operands: Sequence[Operand], numbers: Mapping[str, float]) -> Content:
    """Return what a function makes of padding; a function that is None copies.

    Args:
        entry: of one result.
        operands: its operands, in order.
        numbers: its other arguments.
    """
    contents = [None if isinstance(n, np.ndarray) else n for n in operands]
    if entry is None:
        return contents[0]
    made = _applied(entry, contents, numbers)
    return _alike(entry, operands, numbers) if made is None else made


def _alike(entry: OpEntry, operands: Sequence[Operand], numbers: Mapping[str, float]) -> Content:
    """The number that a function makes of all numbers of a constant, as of places none of which is the padding's."""
    given = [np.asarray(n, np.float64) for n in operands if n is not None]
    if len(given) < len(operands) or sum(n.size > 1 for n in given) != 1:
        return None
    with np.errstate(all="ignore"):
        found = np.unique(np.asarray(entry.meaning(*given, **numbers), np.float64))
    return float(found[0]) if found.size == 1 and not isnan(found[0]) else None


def _applied(entry: OpEntry, operands: Sequence[Content], numbers: Mapping[str, float]) -> Content:
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


def is_neutral(reduction: OpEntry, content: Content, limits: Limits | None = None) -> bool:
    """Return whether a reduction takes in any number of such elements without a change of its result.

    Args:
        reduction: which.
        content: of the elements.
        limits: of the other elements that it takes in: the least number is neutral to the largest, and vice versa.
    """
    if content is None:
        return False
    least, most = _NEUTRAL.get(reduction.name, (inf, -inf))
    if limits is not None and reduction is reductions.amax and content <= limits[0]:
        return True
    if limits is not None and reduction is reductions.amin and content >= limits[1]:
        return True
    return least <= content <= most


def reduced(reduction: OpEntry, content: Content) -> Content:
    """Return what a reduction makes of rows whose elements all are such; their number is any."""
    return content if reduction in EXTREMES or is_neutral(reduction, content) else None
