"""Fields of an object that follow from its deciding fields and its context, with their values.

`implied` gives exactly what the front end would write. A file that says otherwise keeps what it says: the text form
spells the difference out.
"""

from __future__ import annotations

from collections.abc import Callable

from spyre_mlir.dialects.superdsc.model import derived_values, keys
from spyre_mlir.dialects.superdsc.model.descriptor import Version
from spyre_mlir.dialects.superdsc.model.fields import Level
from spyre_mlir.dialects.superdsc.model.file_context import FileContext
from spyre_mlir.dialects.superdsc.model.json_value import Json, JsonObject, as_int, as_list, as_text
from spyre_mlir.hw.formats import FORMATS


def _sdsc(_fields: JsonObject, context: FileContext) -> JsonObject:
    cores = context.cores
    if cores is None or context.splits is None:
        return {}
    table: JsonObject = {str(core): dict(row) for core, row in enumerate(context.slices())}
    return {
        keys.SDSC_FOLD_PROPS: [derived_values.prop(1, "time")],
        keys.SDSC_FOLDS: derived_values.time_folds(),
        keys.CORE_FOLD: derived_values.prop(cores, "core"),
        keys.CORELET_FOLD: derived_values.prop(1, "corelet"),
        keys.CORES_USED: cores,
        keys.CORE_TO_DSC: derived_values.per_core(cores, 0),
        keys.CORE_TO_SLICE: table,
        keys.SCHEDULE: derived_values.per_core(cores, [[-1, 0, 0, 0]]),
        keys.DSCS: [],
    }


def _dsc(_fields: JsonObject, context: FileContext) -> JsonObject:
    cores, sizes = context.cores, context.sizes
    if cores is None or context.splits is None or sizes is None:
        return {}
    ids: list[Json] = list(range(cores))
    return {
        keys.CORES_USED: cores,
        keys.CORELETS_USED: 1,
        keys.CORE_IDS: ids,
        keys.MASKING: {},
        keys.MASK_CONSTANT: -1,
        keys.STAGES: derived_values.stages(sizes, context.splits, context.version),
        keys.SCHEDULE_TREE: [],
        keys.LABELED_DS: [],
        keys.CONSTANTS: {} if context.has_constants else "{}",
        keys.COMPUTE: [],
    }


def _allocate(fields: JsonObject, context: FileContext) -> JsonObject:
    index, component = as_int(fields.get(keys.INDEX)), as_text(fields.get(keys.COMPONENT))
    order = as_list(fields.get(keys.ORDER))
    if index is None or component is None or order is None:
        return {}
    limits: list[Json] = [-1] * len(order)
    result: JsonObject = {
        keys.NODE_TYPE: "allocate",
        keys.NAME: derived_values.node_name(index, component),
        keys.PREV: "",
        keys.MAX_SIZES: limits,
    }
    if context.version is not Version.TS25:
        result[keys.INDIRECT] = "no_indirection"
    coordinates = _coordinates(index, context)
    if coordinates is not None:
        result[keys.COORDINATES] = {keys.COORD_INFO: coordinates, keys.CORE_TO_SLICE: {}}
    return result


def _coordinates(index: int, context: FileContext) -> JsonObject | None:
    operand = context.operands.get(index)
    layout = context.layouts.get(operand.layout) if operand else None
    if operand is None or layout is None or context.sizes is None or context.splits is None:
        return None
    if len(operand.scale) != len(layout.order) or operand.format not in FORMATS:
        return None
    lanes = FORMATS[operand.format].elements_per_stick()
    result: JsonObject = {}
    for label, scale in zip(layout.order, operand.scale, strict=True):
        split = context.splits.get(label, 1)
        size = context.sizes.get(label, 1) // split
        result[label] = derived_values.coordinate(size, split, scale, lanes if label in layout.sticks else None)
    return result


def _labeled_ds(fields: JsonObject, context: FileContext) -> JsonObject:
    index, name = as_int(fields.get(keys.INDEX)), as_text(fields.get(keys.FORMAT))
    if index is None or name is None:
        return {}
    result: JsonObject = {keys.DS_NAME: derived_values.operand_name(index)}
    if name in FORMATS:
        result[keys.WORD_LENGTH] = FORMATS[name].word_length
    if index in context.components:
        result[keys.MEMORY] = derived_values.memories(context.components[index], fields.get(keys.CLASS) == "KERNEL_IDX")
    return result


def _constant(_fields: JsonObject, _context: FileContext) -> JsonObject:
    return {}


def _compute(_fields: JsonObject, _context: FileContext) -> JsonObject:
    return {keys.LOCATION: "Inner"}


_BY_LEVEL: dict[Level, Callable[[JsonObject, FileContext], JsonObject]] = {
    Level.SDSC: _sdsc,
    Level.DSC: _dsc,
    Level.ALLOCATE: _allocate,
    Level.LABELED_DS: _labeled_ds,
    Level.CONSTANT: _constant,
    Level.COMPUTE: _compute,
}


def implied(level: Level, fields: JsonObject, context: FileContext) -> JsonObject:
    """Return fields that follow from the deciding ones among `fields` and from `context`."""
    return _BY_LEVEL[level](fields, context)
