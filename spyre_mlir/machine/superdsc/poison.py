"""Results computed from bytes that were never written.

Lanes beyond a tensor's extent are often uninitialised, and element-wise functions carry them along harmlessly. A
program is wrong when such a lane enters a sum, or when the first lane of a stick, which always holds data, was never
written.

Decision: docs/decisions/0021-padding-and-poison.md
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor
from spyre_mlir.machine.faults import FaultKind, FaultLog, fault
from spyre_mlir.machine.hardware_functions import Pointwise
from spyre_mlir.machine.memory.exact import Bools, Floats
from spyre_mlir.machine.memory.operand_views import ByteAccess, TrackedArray
from spyre_mlir.machine.memory.shadow import spread


def _first(bad: Bools) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(int(bad.reshape(-1).argmax()), bad.shape))


def require_lane_zero(view: Descriptor, index: int, access: ByteAccess, tensor: TrackedArray, log: FaultLog) -> None:
    """Refuse an operand with a stick whose first lane was never written.

    Raises:
        MachineFault: ``uninitialised-read``.
    """
    if tensor.written is None:
        return
    operand = view.operands[index]
    missing = ~tensor.written
    if operand.stick is not None:
        axis = next(place for place, dim in enumerate(view.dims) if dim.label == operand.stick)
        first = tuple(slice(None, None, operand.elements_per_stick if p == axis else 1) for p in range(missing.ndim))
        heads: Bools = np.zeros_like(missing)
        heads[first] = missing[first]
        missing = heads
    if missing.any():
        log.meet(
            fault(
                FaultKind.UNINITIALISED_READ,
                f"{int(missing.sum())} sticks were never written in lane 0",
                access.place_at(_first(missing)),
                hint="write the operand, or fill its padding",
            )
        )


def pointwise_written(meaning: Pointwise, inputs: Sequence[TrackedArray]) -> Bools | None:
    """Mark an element as written when all its inputs were; a select considers only the selected input."""
    states = [tensor.written for tensor in inputs]
    if meaning.selects:
        return chosen_written(inputs[0].values, states)
    known = [state for state in states if state is not None]
    result = known[0] if known else None
    for other in known[1:]:
        result = other if result is None else result & other
    return result


def chosen_written(condition: Floats, states: Sequence[Bools | None]) -> Bools | None:
    """Mark a selected element as written when the condition and what it chooses were.

    Args:
        condition: not 0 chooses the second operand, else the third.
        states: of the three operands.
    """
    rank = next((state.ndim for state in states if state is not None), None)
    if rank is None:
        return None
    first, second, third = (np.ones((1,) * rank, dtype=np.bool_) if s is None else s for s in states)
    return first & np.where(condition != 0, second, third)


def folded_written(
    view: Descriptor, tensor: TrackedArray, axes: Sequence[int], access: ByteAccess, log: FaultLog
) -> Bools | None:
    """Mark reduced elements: padding alone gives padding; partly padding is a fault, except in a padding lane.

    Raises:
        MachineFault: ``uninitialised-read``.
    """
    if tensor.written is None:
        return None
    everything: Bools = np.all(tensor.written, axis=tuple(axes), keepdims=True)
    something: Bools = np.any(tensor.written, axis=tuple(axes), keepdims=True)
    mixed = something & ~everything & _first_lanes(view, everything.shape)
    if mixed.any():
        bad = ~tensor.written & mixed
        log.meet(
            fault(
                FaultKind.UNINITIALISED_READ,
                f"{int(bad.sum())} elements that were never written enter a reduction",
                access.place_at(_first(bad)),
                hint="mask the padding, or fill it with a neutral value",
            )
        )
    return everything


def _first_lanes(view: Descriptor, shape: tuple[int, ...]) -> Bools:
    """Return which elements of a result of `shape` go to lane 0 of a stick: there, data is never padding."""
    first = np.ones((1,) * len(shape), dtype=np.bool_)
    for axis, dim in enumerate(view.dims):
        if dim.label == view.output.stick and shape[axis] > 1:
            lanes = np.arange(shape[axis]) % view.output.elements_per_stick == 0
            first = first & lanes.reshape([-1 if place == axis else 1 for place in range(len(shape))])
    return first


def contracted_written(
    view: Descriptor,
    inputs: Sequence[TrackedArray],
    contracted: Sequence[int],
    accesses: Sequence[ByteAccess],
    log: FaultLog,
) -> Bools | None:
    """Mark elements as for a reduction, on both operands of a contraction.

    Raises:
        MachineFault: ``uninitialised-read``.
    """
    pairs = zip(inputs, accesses, strict=False)
    sides = [folded_written(view, tensor, contracted, access, log) for tensor, access in pairs]
    known = [side for side in sides if side is not None]
    if not known:
        return None
    result = known[0]
    for other in known[1:]:
        result = result & other
    return spread(result, accesses[-1].shape)
