"""Channels that slices, signs and concatenations move: which channel of which tensor, and with which sign."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import SSAValue

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.spyre.hints import hint_of
from spyre_mlir.dialects.tensors import shape_of
from spyre_mlir.ops.native import pointwise
from spyre_mlir.transforms.utils.aten_ops import arguments_of

(NEG,) = pointwise.neg.overloads
_LAST = ("cat", "view")  # ops that end a turn
_MOVES = (*_LAST, "stack", "slice.Tensor", NEG, "unsqueeze", "squeeze.dims", "clone")


@dataclass(frozen=True)
class _Moved:
    """Channels of a tensor, as they come from those of another one; the same for all its leading dimensions.

    Attributes:
        source: the tensor they are taken from.
        channels: by channel of the tensor, its number in the source, counted from 1; negative if its sign is changed.
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
    found = _step(op, shape)
    if found is None or shape_of(found.source) != shape:
        return None
    at = np.arange(shape[-1])
    if (distance := int(-found.channels[0] - 1)) < 1 or shape[-1] % (2 * distance):
        return None
    wanted = np.where(at // distance % 2, at - distance + 1, -(at + distance + 1))
    return (found.source, distance) if np.array_equal(found.channels, wanted) else None


def _followed(value: SSAValue, whole: tuple[int, ...]) -> _Moved | None:
    """The channels of a tensor; one with all channels is its own source."""
    if shape_of(value) == whole:
        return _Moved(value, np.arange(1, whole[-1] + 1))
    return _step(value.owner, whole) if isinstance(value.owner, AtenOp) else None


def _step(op: AtenOp, whole: tuple[int, ...]) -> _Moved | None:
    """The channels of an op's result; None if the op does anything but move those of its operands."""
    lead, plain = whole[:-1], not op.on_host and hint_of(op) is None and len(op.results) == 1
    if not plain or any(shape_of(v)[: len(lead)] != lead or len(shape_of(v)) == len(lead) for v in op.operands):
        return None
    args, rank = arguments_of(op), len(lead)
    behind = args["dim"] % len(shape_of(op.results[0])) - rank if isinstance(args.get("dim"), int) else 0
    if behind < 0 or op.overload not in _MOVES:
        return None
    parts = [_followed(v, whole) for v in op.operands]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts) or len({part.source for part in known}) != 1:
        return None
    first, *_ = arrays = [part.channels for part in known]
    match op.overload:
        case "cat":
            made = np.concatenate(arrays, behind)
        case "stack":
            made = np.stack(arrays, behind)
        case "slice.Tensor":
            taken = (*(slice(None),) * behind, slice(args["start"], args["end"], args["step"]))
            made = first[taken]
        case name if name == NEG:
            made = -first
        case _:
            made = first.reshape(shape_of(op.results[0])[rank:])
    return _Moved(known[0].source, made)


__all__ = ["NEG", "turn_of"]
