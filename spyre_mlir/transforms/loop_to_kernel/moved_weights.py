"""Copies of a weight that only move its elements: the host makes them when it lays the weight out.

A copy that permutes, reshapes or slices a weight, or puts zeros around it, gives another weight: its readers ask the
host for it in the layout that suits them, as they do for weights.

Decision: docs/decisions/0138-weights-are-rearranged-at-load.md
"""

from __future__ import annotations

from dataclasses import dataclass
from math import copysign

from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Operation, SSAValue

from spyre_mlir.dialects.aten_arguments import WIDENED
from spyre_mlir.dialects.spyre import loop
from spyre_mlir.dialects.spyre.loop import body_function
from spyre_mlir.dialects.tensors import element_of, shape_of
from spyre_mlir.hw.moves import Move
from spyre_mlir.transforms.loop_to_kernel.device_forms import DeviceForms
from spyre_mlir.transforms.loop_to_kernel.layout_planner import LayoutPlanner

# First and last place along each dimension.
_Box = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class _Parts:
    """A tensor that is filled part by part, with zeros and at most one weight.

    Attributes:
        weight: the weight after the moves into this tensor; None as long as there are only zeros.
        box: where its elements are.
    """

    weight: DeviceForms | None = None
    box: _Box = ()


def fold_into_weight(p: LayoutPlanner, op: Operation) -> bool:
    """Let readers of an op's result ask the host for it, if it only moves elements of a weight; say whether it does."""
    found: _Parts | None = None
    match op:
        case loop.NestOp() if op.dest is None or p.of(op.dest).provided:
            found = _parts(p, op.result)
        case loop.EmptyOp():
            chain = fillers(op.result)
            end = _parts(p, chain[-1].result) if chain else None
            if end is not None and end.weight is not None:
                p.taken(end.weight)
                found = _Parts()
        case _:
            pass
    if found is None:
        return False
    result = op.results[0]
    zeros = DeviceForms(shape_of(result), p.of(result).format, constant=FloatAttr(0.0, 64))
    p.versions[result] = zeros if found.weight is None else p.taken(found.weight)
    return True


def _parts(p: LayoutPlanner, value: SSAValue) -> _Parts | None:
    """What a tensor consists of, if copies have made it; None if it is anything else than zeros and one weight."""
    op = value.owner
    if not isinstance(op, loop.NestOp):
        return _Parts() if isinstance(op, loop.EmptyOp) else None
    if op.combine is not None or body_function(op.body.block) is not None:
        return None
    (source,), (index,) = op.inputs, op.input_maps
    if element_of(source) != element_of(value):
        return None
    space, extents = op.space.data, op.space.extents
    box = tuple((e.first(extents), e.last(extents)) for e in op.output_map.data)
    added: DeviceForms | None = None
    if not _is_zero(source):
        weight = _weight(p, source)
        move = Move(tuple((d.name, d.extent) for d in space), index.data, op.output_map.data, shape_of(value))
        if WIDENED in op.attributes and weight is not None and weight.host is not None:
            p.room.granted.add(weight.host)
        added = None if weight is None else weight.after(move, p.room)
        if added is None:
            return None
    before = _Parts() if op.dest is None else _parts(p, op.dest)
    if before is None:
        return None
    if added is not None:
        # Two parts of weights would be two transfers into one tensor.
        return _Parts(added, box) if before.weight is None else None
    apart = before.weight is None or _apart(before.box, box)
    return before if apart and op.dest is not None else None


def _weight(p: LayoutPlanner, value: SSAValue) -> DeviceForms | None:
    """The forms of a weight, or of what moves made of one; None for tensors that the program computes or writes."""
    if isinstance(value.owner, Operation):
        parts = _parts(p, value)
        return None if parts is None else parts.weight
    forms = p.of(value)
    return forms if forms.host is value and forms.prepared and value not in p.written else None


def fillers(value: SSAValue) -> list[loop.NestOp]:
    """Return the nests that fill a destination one after the other."""
    chain = list[loop.NestOp]()
    while True:
        users = (use.operation for use in value.uses)
        writers = [op for op in users if isinstance(op, loop.NestOp) and op.dest is value]
        if len(writers) != 1:
            return chain
        chain += writers
        value = writers[0].result


def _is_zero(value: SSAValue) -> bool:
    """Whether a tensor is 0 everywhere, without a sign."""
    number = value.owner.value if isinstance(value.owner, loop.LoopConstantOp) else None
    if not isinstance(number, FloatAttr | IntegerAttr):
        return False
    return number.value.data == 0 and copysign(1.0, number.value.data) > 0


def _apart(one: _Box, other: _Box) -> bool:
    """Whether two boxes have no place in common."""
    return any(a[1] < b[0] or b[1] < a[0] for a, b in zip(one, other, strict=True))


__all__ = ["fillers", "fold_into_weight"]
