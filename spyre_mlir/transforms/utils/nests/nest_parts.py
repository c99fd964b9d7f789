"""Nests over a part of one of their loops, and others with the body of a nest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue

from spyre_mlir.dialects.spyre.attributes import IndexMapAttr, IterDim, SpaceAttr
from spyre_mlir.dialects.spyre.loop import NestOp, YieldOp
from spyre_mlir.dialects.tensors import element_of, shape_of
from spyre_mlir.hw.sticks import LinearExpr


def is_copy(op: NestOp) -> bool:
    """Return whether a nest copies its input."""
    return op.combine is None and isinstance(op.body.block.first_op, YieldOp)


def nest_like(
    op: NestOp,
    space: SpaceAttr,
    inputs: Sequence[SSAValue],
    maps: Sequence[IndexMapAttr],
    kind: Attribute,
    dest: SSAValue | None = None,
) -> NestOp:
    """Return a nest that computes what another does, with its body, its attributes, and its place in the model.

    Args:
        op: the other one.
        space: the loops.
        inputs: tensors that it reads.
        maps: of the inputs, and of the result.
        kind: type of the result.
        dest: a tensor that it fills; None if it makes one.
    """
    combine = None if op.combine is None else op.combine.data
    made = NestOp(space, inputs, maps, kind, op.body.clone(), combine=combine, dest=dest)
    made.attributes |= op.attributes
    made.wide, made.location, made.result.name_hint = op.wide, op.location, op.result.name_hint
    return made


def part_of(op: NestOp, name: str, part: slice, made: Mapping[int, SSAValue], dest: SSAValue | None = None) -> NestOp:
    """Return a nest over a part of the loop `name`, which fills it in `dest` or makes a tensor of it.

    Args:
        op: it has no destination, and the loop walks one dimension of its result or none, by itself or outside of
            others that fill a step.
        name: of the loop.
        part: its start and end in the loop.
        made: by number, the inputs that were cut in the same way, as their parts.
        dest: a tensor of the result's type; None makes one of the part alone.
    """
    start, extent = part.start, part.stop - part.start
    maps = [index if number in made else moved(index, name, start) for number, index in enumerate(op.input_maps)]
    maps.append(op.output_map if dest is None else moved(op.output_map, name, start))
    space = SpaceAttr(tuple(IterDim(d.name, extent if d.name == name else d.extent) for d in op.space.data))
    shape = shape_of(op.result)
    if dest is None:
        steps = [sum(c for n, c in e.terms if n == name) for e in op.output_map.data]
        shape = tuple(extent * by or e for by, e in zip(steps, shape, strict=True))
    inputs = [made.get(number, value) for number, value in enumerate(op.inputs)]
    return nest_like(op, space, inputs, maps, TensorType(element_of(op.result), shape), dest)


def dim_of(index: IndexMapAttr, name: str) -> int | None:
    """Return the dimension that a loop walks from the first element to the last by itself."""
    found = [d for d, e in enumerate(index.data) if any(n == name for n, _ in e.terms)]
    return found[0] if len(found) == 1 and index.data[found[0]] == LinearExpr.of(name) else None


def moved(index: IndexMapAttr, name: str, by: int) -> IndexMapAttr:
    """Return a map in which the loop `name` counts from `by` on."""
    return IndexMapAttr(tuple(e.moved(name, by) for e in index.data))


__all__ = ["dim_of", "is_copy", "moved", "nest_like", "part_of"]
