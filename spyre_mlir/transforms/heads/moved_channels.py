"""Channels that slices, signs and concatenations move: which channel of which tensor, and with which sign."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import SSAValue

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.spyre.hints import hint_of
from spyre_mlir.dialects.tensors import shape_of

_LAST = ("cat", "view")  # ops that end a turn


@dataclass(frozen=True)
class _Moved:
    """Elements of a tensor behind its leading dimensions.

    Attributes:
        source: the tensor they are taken from.
        channels: the number of each element's channel in it, counted from 1, negative if its sign is changed.
    """

    source: SSAValue
    channels: NDArray[np.int64]


def turn_of(op: AtenOp) -> tuple[SSAValue, int] | None:
    """Return the tensor whose last dimension an op and those before it turn, and how far a channel goes.

    Of two channels that are so far apart the second one comes to the place of the first with its sign changed, and the
    first one to the place of the second. None if the result is something else.
    """
    shape = shape_of(op.results[0])
    if op.overload not in _LAST or len(shape) < 2 or shape[-1] % 2:
        return None
    found = _followed(op.results[0], shape[:-1])
    if found is None or found.source is op.results[0] or shape_of(found.source) != shape:
        return None
    at = np.arange(shape[-1])
    if (distance := int(-found.channels[0] - 1)) < 1 or shape[-1] % (2 * distance):
        return None
    wanted = np.where(at // distance % 2, at - distance + 1, -(at + distance + 1))
    return (found.source, distance) if np.array_equal(found.channels, wanted) else None


def _followed(value: SSAValue, lead: tuple[int, ...]) -> _Moved | None:
    """The elements behind leading dimensions; a tensor that no such op makes is its own source."""
    op, shape = value.owner, shape_of(value)
    if isinstance(op, AtenOp) and not op.on_host and hint_of(op) is None and len(op.results) == 1:
        given = [v for v in op.operands if shape_of(v)[: len(lead)] == lead and len(shape_of(v)) > len(lead)]
        if len(given) == len(op.operands) and (made := _step(op, lead)) is not None:
            return made
    return _Moved(value, np.arange(1, shape[-1] + 1)) if len(shape) == len(lead) + 1 else None


def _step(op: AtenOp, lead: tuple[int, ...]) -> _Moved | None:
    """What an op makes of the elements of its operands; None if it does anything but move them."""
    said: dict[str, Any] = dict(op.arguments())
    rank = len(lead)
    behind = said["dim"] % len(shape_of(op.results[0])) - rank if isinstance(said.get("dim"), int) else 0
    if behind < 0 or op.overload not in (*_LAST, "neg", "slice.Tensor", "unsqueeze", "stack", "clone", "select.int"):
        return None
    parts = [_followed(v, lead) for v in op.operands]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts) or len({part.source for part in known}) != 1:
        return None
    first, *_ = arrays = [part.channels for part in known]
    match op.overload:
        case "cat":
            made = np.concatenate(arrays, behind)
        case "stack":
            made = np.stack(arrays, behind)
        case "unsqueeze":
            made = np.expand_dims(first, behind)
        case "select.int":
            behind = said["dim"] % len(shape_of(op.operands[0])) - rank
            made = first.take(said["index"], behind)
        case "slice.Tensor":
            taken = (*(slice(None),) * behind, slice(said["start"], said["end"], said["step"]))
            made = first[taken]
        case "neg":
            made = -first
        case _:
            made = first.reshape(shape_of(op.results[0])[rank:])
    return _Moved(known[0].source, made)


__all__ = ["turn_of"]
