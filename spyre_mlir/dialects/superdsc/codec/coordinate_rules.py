"""Coordinates that sizes, splits and scales alone do not define: windows, FP8 matmuls, own distributions."""

from __future__ import annotations

from collections.abc import Sequence

from spyre_mlir.dialects.superdsc.codec import window_fields
from spyre_mlir.dialects.superdsc.model import derived_values
from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor, Operand
from spyre_mlir.dialects.superdsc.model.json_value import JsonObject

_FP8_PRODUCT = "batchmatmulfp8"


def own_splits(operand: Operand) -> dict[str, int]:
    """Return slices per dim of an operand's own distribution."""
    splits: dict[str, int] = {}
    for row in operand.slices:
        for label, number in row.items():
            splits[label] = max(splits.get(label, 1), number + 1)
    return splits


def coordinate_rules(view: Descriptor, number: int, order: Sequence[str]) -> JsonObject | None:
    """Return `coordInfo` of an operand by dim of its class; None where the plain rule defines it.

    Args:
        view: the descriptor.
        number: which operand.
        order: the class's dims.
    """
    operand = view.operands[number]
    windows = {window.dim: window for window in view.windows if number == 0}
    packed = view.op_func == _FP8_PRODUCT and number == 0
    if not windows and not packed and not operand.slices:
        return None
    splits, sticks = own_splits(operand), operand.stick_lanes or (view.stick,)
    result: JsonObject = {}
    for label in order:
        dim = view.dim(label)
        split = splits.get(label, 1) if operand.slices else dim.split
        lanes = operand.elements_per_stick if label in sticks else None
        if label in windows:
            result[label] = window_fields.coordinate(view, windows[label])
        elif packed and lanes is not None:
            result[label] = derived_values.product_fp8_coordinate(dim.extent // split, split, lanes)
        else:
            missing = -2 if lanes is not None and operand.stick is None else -1
            scale = 1 if label in operand.order else missing
            result[label] = derived_values.coordinate(dim.extent // split, split if scale == 1 else 1, scale, lanes)
    return result
