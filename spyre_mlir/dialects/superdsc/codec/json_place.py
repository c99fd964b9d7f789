"""Location in its file of the JSON object that an op mirrors."""

from __future__ import annotations

from spyre_mlir.dialects.superdsc.dialect.fields_op import FieldsOp
from spyre_mlir.dialects.superdsc.dialect.ops import DscOp, SdscConstantOp, SdscOp, name_text
from spyre_mlir.dialects.superdsc.model import keys
from spyre_mlir.dialects.superdsc.model.fields import Level

_LISTS = {Level.ALLOCATE: keys.SCHEDULE_TREE, Level.LABELED_DS: keys.LABELED_DS, Level.COMPUTE: keys.COMPUTE}


def json_path(op: FieldsOp) -> str:
    """Return the JSON path of the object an op mirrors."""
    parent = op.parent_op()
    if isinstance(op, SdscOp) or not isinstance(parent, FieldsOp):
        return f"$.{op.root_key}" if isinstance(op, SdscOp) else "$"
    if isinstance(op, DscOp):
        return f"{json_path(parent)}.{keys.DSCS}[{_place(op)}].{name_text(op.op_name)}"
    if isinstance(op, SdscConstantOp):
        return f"{json_path(parent)}.{keys.CONSTANTS}.{name_text(op.key)}"
    return f"{json_path(parent)}.{_LISTS[op.LEVEL]}[{_place(op)}]"


def _place(op: FieldsOp) -> int:
    """Number of an op among those of its kind in its block."""
    parent = op.parent_block()
    siblings = [other for other in parent.ops if type(other) is type(op)] if parent else [op]
    return next(place for place, other in enumerate(siblings) if other is op)
