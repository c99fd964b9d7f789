"""Tensors that `cat` joins, and the ops that come behind it and treat each part alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from xdsl.dialects import func
from xdsl.ir import SSAValue

from spyre_mlir.dialects.argument_notes import is_prepared
from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.tensors import element_of, shape_of
from spyre_mlir.ops.table import Family
from spyre_mlir.transforms.utils.aten_ops import arguments_of, is_open

BATCH_NORM, LAYER_NORM = "_native_batch_norm_legit_no_training", "layer_norm"


@dataclass(frozen=True)
class JoinedParts:
    """A tensor whose places along one dimension follow from parts that `cat` joins.

    Attributes:
        whole: what `cat` makes.
        parts: the tensors joined.
        axis: the dimension along which they are.
        steps: ops between `cat` and the tensor, in order.
        axes: the dimension of the parts in what each step reads.
    """

    whole: SSAValue
    parts: tuple[SSAValue, ...]
    axis: int
    steps: tuple[AtenOp, ...] = ()
    axes: tuple[int, ...] = ()

    @property
    def widths(self) -> list[int]:
        """How many places each part has."""
        return [shape_of(part)[self.axis] for part in self.parts]


def joined_parts(function: func.FuncOp, value: SSAValue, axis: int) -> JoinedParts | None:
    """Return the parts of a tensor along a dimension; None if it does not follow from joined tensors.

    What `cat` makes may have more readers; what follows from it has one. Between `cat` and the tensor may be
    permutations, views that leave the dimension, functions of one tensor element by element, and normalisations whose
    parameters are weights.
    """
    op = value.owner
    if not isinstance(op, AtenOp) or not is_open(op):
        return None
    if op.overload == "cat":
        parts, dim = tuple(op.operands), arguments_of(op)["dim"] % len(shape_of(value))
        return JoinedParts(value, parts, dim) if dim == axis and _are_alike(value, parts) else None
    if not value.has_one_use():
        return None
    before = _axis_before(function, op, axis)
    found = None if before is None else joined_parts(function, op.operands[0], before)
    if found is None or before is None:
        return None
    return replace(found, steps=(*found.steps, op), axes=(*found.axes, before))


def _are_alike(whole: SSAValue, parts: Sequence[SSAValue]) -> bool:
    """Whether several parts have elements, and of the same type."""
    rank, element = len(shape_of(whole)), element_of(whole)
    alike = all(len(shape_of(p)) == rank and element_of(p) == element and 0 not in shape_of(p) for p in parts)
    return alike and len(parts) > 1


def _axis_before(function: func.FuncOp, op: AtenOp, axis: int) -> int | None:
    """The dimension in what an op reads that becomes `axis`, if the op treats parts along it alike; None otherwise."""
    shape, made = shape_of(op.operands[0]) if op.operands else (), shape_of(op.results[0])
    match op.overload:
        case "permute":
            return arguments_of(op)["dims"][axis] % len(shape)
        case "view":
            behind = prod(made[axis + 1 :])
            places = (n for n, e in enumerate(shape) if e == made[axis] and prod(shape[n + 1 :]) == behind)
            return next(places, None)
        case "clone":
            return axis
        case "layer_norm":
            own = axis == len(made) - 1 and tuple(arguments_of(op)["normalized_shape"]) == made[-1:]
            return axis if own and _has_own_weights(function, op) else None
        case "_native_batch_norm_legit_no_training":
            read = any(result.uses for result in op.results[1:])
            return axis if axis == 1 and not read and _has_own_weights(function, op) else None
        case _:
            pointwise = op.entry is not None and op.entry.family is Family.POINTWISE and len(op.operands) == 1
            return axis if pointwise and shape == made else None


def _has_own_weights(function: func.FuncOp, op: AtenOp) -> bool:
    """Whether the host lays out the weights of an op at load, for this reader, in the element type of what it reads."""
    element = element_of(op.operands[0])
    return all(is_prepared(function, v) and v.has_one_use() and element_of(v) == element for v in op.operands[1:])


__all__ = ["BATCH_NORM", "LAYER_NORM", "JoinedParts", "joined_parts"]
