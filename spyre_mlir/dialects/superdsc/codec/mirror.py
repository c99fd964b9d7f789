"""Lossless conversion between the JSON of a SuperDSC and its op.

A list becomes ops only if every entry has the shape an op mirrors; otherwise it stays in the fields as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from spyre_mlir.dialects.superdsc.codec.linked_body import linked_body
from spyre_mlir.dialects.superdsc.dialect.ops import (
    AllocateOp,
    DscOp,
    LabeledDsOp,
    SdscComputeOp,
    SdscConstantOp,
    SdscOp,
    name_text,
)
from spyre_mlir.dialects.superdsc.model import keys
from spyre_mlir.dialects.superdsc.model.file_context import version_of
from spyre_mlir.dialects.superdsc.model.json_value import Json, JsonObject, as_list, as_object, as_text, same


def sdsc_from_json(root: str, fields: JsonObject) -> SdscOp:
    """Return the op that mirrors a file's root key and object."""
    kept, dscs = dict(fields), _one_key_objects(fields.get(keys.DSCS))
    ops: list[DscOp] = []
    if dscs:
        kept[keys.DSCS] = []
        ops = [_dsc_from_json(name, body) for name, body in dscs]
    return SdscOp(root, kept, ops, version_of(fields))


def _one_key_objects(value: Json) -> list[tuple[str, JsonObject]] | None:
    pairs: list[tuple[str, JsonObject]] = []
    for entry in as_list(value) or []:
        for name, body in (as_object(entry) or {}).items():
            if isinstance(body, dict):
                pairs.append((name, body))
    entries: list[Json] = [{name: body} for name, body in pairs]
    return pairs if same(entries, value) else None


def _dsc_from_json(name: str, fields: JsonObject) -> DscOp:
    kept = dict(fields)
    nodes = _take(kept, keys.SCHEDULE_TREE, _is_allocate)
    operands, computes = _take(kept, keys.LABELED_DS), _take(kept, keys.COMPUTE)
    constants = as_object(fields.get(keys.CONSTANTS)) or {}
    items = {key: item for key, item in constants.items() if isinstance(item, dict)}
    if not items or len(items) != len(constants):
        items = {}
    else:
        kept[keys.CONSTANTS] = {}
    return DscOp(name, kept, linked_body(nodes, operands, items, computes))


def _is_allocate(fields: JsonObject) -> bool:
    return as_text(fields.get(keys.NODE_TYPE)) == "allocate"


def _take(
    fields: JsonObject, key: str, fits: Callable[[JsonObject], bool] = lambda _entry: True
) -> Sequence[JsonObject]:
    """Move a list of objects out of the fields, if every entry fits."""
    entries = as_list(fields.get(key)) or []
    objects = [entry for entry in entries if isinstance(entry, dict) and fits(entry)]
    if not objects or len(objects) != len(entries):
        return []
    fields[key] = []
    return objects


def sdsc_to_json(op: SdscOp) -> JsonObject:
    """Return the file's value: one root key and its object."""
    fields = op.fields
    dscs = op.dscs()
    if dscs:
        fields[keys.DSCS] = [{name_text(dsc.op_name): _dsc_to_json(dsc)} for dsc in dscs]
    return {op.root_key: fields}


def _dsc_to_json(op: DscOp) -> JsonObject:
    fields = op.fields
    lists = {keys.SCHEDULE_TREE: AllocateOp, keys.LABELED_DS: LabeledDsOp, keys.COMPUTE: SdscComputeOp}
    for key, kind in lists.items():
        entries: list[Json] = [item.fields for item in op.items(kind)]
        if entries:
            fields[key] = entries
    constants: JsonObject = {}
    for item in op.items(SdscConstantOp):
        if isinstance(item, SdscConstantOp):
            constants[name_text(item.key)] = item.fields
    if constants:
        fields[keys.CONSTANTS] = constants
    return fields
