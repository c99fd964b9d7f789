"""The ops of a DSC from the entries of its lists, linked by the operand numbers in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from xdsl.ir import SSAValue

from spyre_mlir.dialects.superdsc.dialect.links import number_of
from spyre_mlir.dialects.superdsc.dialect.ops import AllocateOp, InDsc, LabeledDsOp, SdscComputeOp, SdscConstantOp
from spyre_mlir.dialects.superdsc.model.json_value import JsonObject


def linked_body(
    nodes: Iterable[JsonObject],
    operands: Iterable[JsonObject],
    constants: Mapping[str, JsonObject],
    computes: Iterable[JsonObject],
) -> list[InDsc]:
    """Return the ops: an operand is linked to all nodes of its number, a reference to the first operand of its number.

    Args:
        nodes: allocate nodes.
        operands: entries of `labeledDs_`.
        constants: entries of `constantInfo_`, by their keys.
        computes: entries of `computeOp_`.
    """
    places = [AllocateOp(fields) for fields in nodes]
    at: dict[int, list[SSAValue]] = {}
    for place in places:
        if (number := number_of(place.result)) is not None:
            at.setdefault(number, []).append(place.result)
    labeled: list[LabeledDsOp] = []
    known: dict[int, SSAValue] = {}
    for fields in operands:
        op = LabeledDsOp(fields)
        number = number_of(op.result)
        if number is not None:
            op.operands = at.get(number, [])
            known.setdefault(number, op.result)
        labeled.append(op)
    named = [SdscConstantOp(key, fields) for key, fields in constants.items()]
    return [*places, *labeled, *named, *(SdscComputeOp(fields, known) for fields in computes)]
