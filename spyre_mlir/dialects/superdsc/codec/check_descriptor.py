"""Conditions on a descriptor before it can be written."""

from __future__ import annotations

from spyre_mlir.dialects.superdsc.codec import symbolic_fields, window_fields
from spyre_mlir.dialects.superdsc.codec.gaps import back_gaps, unclear_gaps
from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor, Operand
from spyre_mlir.errors import EmitError


def check(descriptor: Descriptor) -> None:
    """Refuse an inconsistent descriptor.

    Raises:
        EmitError: what was needed and what there is.
    """
    where = f"{descriptor.index}_{descriptor.op_func}"
    if not descriptor.dims or not descriptor.operands:
        raise EmitError("a SuperDSC needs at least one dim and one operand", where=where)
    labels = [dim.label for dim in descriptor.dims]
    if len(set(labels)) != len(labels):
        raise EmitError(f"dim labels must differ, got {labels}", where=where)
    for dim in descriptor.dims:
        if dim.extent < 1 or dim.split < 1 or dim.extent % dim.split:
            raise EmitError(
                f"dim {dim.label}: {dim.extent} elements do not divide into {dim.split} slices", where=where
            )
        if dim.valid is not None and not 0 < dim.valid <= dim.extent:
            raise EmitError(f"dim {dim.label}: {dim.valid} valid of {dim.extent} elements", where=where)
    if not -1 <= descriptor.mask_constant < len(descriptor.constants):
        raise EmitError(
            f"mask constant {descriptor.mask_constant} of {len(descriptor.constants)} constants", where=where
        )
    window_fields.check_windows(descriptor, where)
    symbolic_fields.check_symbolic(descriptor, where)
    for number, operand in enumerate(descriptor.operands):
        _check_operand(descriptor, operand, f"{where}, operand {number}")
    for number, label, gap in unclear_gaps(descriptor.op_func_name, descriptor.dims, descriptor.operands):
        raise EmitError(
            f"dim {label} of a restickify has a gap of {gap} elements, which a reader may take for a shortfall",
            where=f"{where}, operand {number}",
            hint="pad both dims to whole sticks before the restickify",
        )


def _check_operand(descriptor: Descriptor, operand: Operand, where: str) -> None:
    labels = [dim.label for dim in descriptor.dims]
    unknown = [label for label in operand.order if label not in labels]
    if unknown or len(operand.extents) != len(operand.order):
        raise EmitError(f"order {operand.order} with extents {operand.extents} over dims {labels}", where=where)
    if operand.stick is not None and operand.stick not in operand.order:
        raise EmitError(f"stick dim {operand.stick} is not in the order {operand.order}", where=where)
    if len(operand.start) != descriptor.cores:
        raise EmitError(f"{len(operand.start)} start addresses for {descriptor.cores} cores", where=where)
    for label, eps in operand.stick_lanes.items():
        dim = descriptor.dim(label)
        if dim.split > 1 and dim.per_core % eps:
            raise EmitError(
                f"a slice of stick dim {dim.label} is {dim.per_core} elements, sticks hold {eps}",
                where=where,
                hint=f"split {dim.label} into whole sticks, or pad it",
            )
    for label, gap in back_gaps(descriptor, operand).items():
        gathered = operand.indirect is not None
        if gap < 0 and not gathered:
            raise EmitError(
                f"dim {label} needs {gap} more elements than are allocated".replace("needs -", "needs "),
                where=where,
                hint="pad the buffer: a file cannot tell a shortfall from a gap",
            )
