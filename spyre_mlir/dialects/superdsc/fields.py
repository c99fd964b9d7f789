"""Every key of the SuperDSC JSON, spelled once: where it stands, its name in text, its kind, its meaning.

The order of a table is the order in which the front end writes the keys. Certainty: C certain (front-end code and a
real file agree, or two independent sources), L likely (one source), I inferred.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """JSON type a field must have."""

    INT = "an integer"
    FLAG = "a boolean or 0/1"
    NUMBER = "a number"
    TEXT = "a string"
    OBJECT = "an object"
    LIST = "a list"
    CONSTANTS = 'an object or the string "{}"'
    ANY = "any value"


class Level(Enum):
    """Objects of the file that have an op of their own."""

    SDSC = "superdsc.sdsc"
    DSC = "superdsc.dsc"
    ALLOCATE = "superdsc.allocate"
    LABELED_DS = "superdsc.labeled_ds"
    CONSTANT = "superdsc.constant"
    COMPUTE = "superdsc.compute"


@dataclass(frozen=True)
class Field:
    """One key of one object.

    Args:
        key: spelling in the file.
        name: spelling in the op's text.
        kind: JSON type.
        meaning: one line.
        certainty: C, L or I.
    """

    key: str
    name: str
    kind: Kind
    meaning: str
    certainty: str


def _table(*rows: tuple[str, str, Kind, str, str]) -> dict[str, Field]:
    return {row[0]: Field(*row) for row in rows}


_SDSC = _table(
    ("debug_handle_", "debug_handle", Kind.ANY, "link to the source op; may be null", "L"),
    ("sdscFoldProps_", "fold_props", Kind.LIST, "time folding of the whole SDSC; always one step", "C"),
    ("sdscFolds_", "folds", Kind.OBJECT, "fold manager of the SDSC; always the identity", "C"),
    ("coreFoldProp_", "core_fold", Kind.OBJECT, "number of cores and their label", "C"),
    ("coreletFoldProp_", "corelet_fold", Kind.OBJECT, "number of corelets used per core; always one", "C"),
    ("numCoresUsed_", "cores_used", Kind.INT, "number of cores: the product of the splits", "C"),
    ("coreIdToDsc_", "core_to_dsc", Kind.OBJECT, "which DSC each core runs; always the first", "C"),
    ("numWkSlicesPerDim_", "splits", Kind.OBJECT, "work slices per dim, in iteration order", "C"),
    ("coreIdToWkSlice_", "core_to_slice", Kind.OBJECT, "slice of every dim each core works on", "C"),
    ("coreIdToDscSchedule", "schedule", Kind.OBJECT, "per core: data op, DSC, sync before, sync after", "C"),
    ("lxRelayoutClassifications_", "lx_relayout", Kind.ANY, "only in research builds", "L"),
    ("dscs_", "dscs", Kind.LIST, "the compute DSCs; exactly one as emitted", "C"),
    ("datadscs_", "data_dscs", Kind.LIST, "data-movement DSCs, written by the back end", "L"),
    ("dataOpdscs_", "data_op_dscs", Kind.LIST, "schema's name of the data-movement DSCs", "L"),
    ("opFuncsUsed_", "op_funcs_used", Kind.LIST, "names of data ops used; research builds and back end", "L"),
    ("target_", "target", Kind.TEXT, "back-end target", "C"),
    ("N_", "sizes", Kind.OBJECT, "back end: all dims of all DSCs, -1 for unused", "C"),
    ("unpadN_", "unpadded_sizes", Kind.OBJECT, "back end: sizes before padding", "C"),
    ("ldsShareInfo_", "share_info", Kind.LIST, "operands shared by several DSCs; empty for one", "C"),
    ("prodConsList", "producers", Kind.OBJECT, "back-end bookkeeping", "C"),
    ("pcfg_", "program_config", Kind.ANY, "back-end bookkeeping", "C"),
    ("spb_", "spb", Kind.ANY, "back-end bookkeeping", "L"),
    ("fold_coord_", "fold_coord", Kind.LIST, "back-end bookkeeping", "C"),
    ("folded_sdsc_name_", "folded_name", Kind.TEXT, "back-end bookkeeping", "C"),
    ("inputSymbolsAndTags_", "input_symbols", Kind.OBJECT, "tag names of input symbols; symbolic sizes only", "L"),
    ("symbolDefinitions_", "symbol_definitions", Kind.OBJECT, "symbolic sizes only", "L"),
    ("dimToSymbolMappingOpcodeCorrection_", "symbol_correction", Kind.OBJECT, "symbolic sizes only", "L"),
)

_DSC = _table(
    ("numCoresUsed_", "cores_used", Kind.INT, "same as of the SDSC", "C"),
    ("numCoreletsUsed_", "corelets_used", Kind.INT, "always one", "C"),
    ("coreIdsUsed_", "core_ids", Kind.LIST, "0 to the number of cores less one", "C"),
    ("N_", "sizes", Kind.OBJECT, "padded size of every iteration dim over all cores", "C"),
    ("coordinateMasking_", "masking", Kind.OBJECT, "per padded dim, pairs of valid and padding extents", "L"),
    ("maskingConstId_", "mask_constant", Kind.INT, "index of the constant that fills masked lanes; -1 none", "C"),
    ("dimToSymbolMapping_", "symbol_mapping", Kind.OBJECT, "symbolic sizes only", "L"),
    ("dataStageParam_", "stages", Kind.OBJECT, "per-core sizes of the steady state and of the epilogue", "C"),
    ("primaryDsInfo_", "classes", Kind.OBJECT, "layout classes: dim order of scales, stick dims and sizes", "C"),
    ("pdsRelation_", "class_relation", Kind.OBJECT, "pooling and convolution only", "L"),
    ("scheduleTree_", "schedule_tree", Kind.LIST, "one allocate node per operand, in operand order", "C"),
    ("labeledDs_", "labeled_ds", Kind.LIST, "the operands, at most eight", "C"),
    ("constantInfo_", "constants", Kind.CONSTANTS, "named scalars by number", "L"),
    ("computeOp_", "compute", Kind.LIST, "the operation; exactly one", "C"),
)

_ALLOCATE = _table(
    ("nodeType_", "node_type", Kind.TEXT, "always allocate as emitted by the front end", "C"),
    ("name_", "name", Kind.TEXT, "allocate-Tensor, operand number, component", "C"),
    ("prev_", "prev", Kind.TEXT, "previous node; empty", "C"),
    ("ldsIdx_", "index", Kind.INT, "operand number", "C"),
    ("component_", "component", Kind.TEXT, "hbm or lx", "C"),
    ("isStartAddrSymbolic_", "symbolic", Kind.FLAG, "whether start addresses are symbol ids", "C"),
    ("layoutDimOrder_", "order", Kind.LIST, "dims of the operand, inner to outer, reduced ones last", "C"),
    ("maxDimSizes_", "max_sizes", Kind.LIST, "-1 per dim; a limit on gathered dims", "C"),
    ("indirectAllocType_", "indirect", Kind.TEXT, "no_indirection, index_tensor or value_tensor", "C"),
    ("relatedIndirectAccessAlloc_", "indirect_partner", Kind.TEXT, "name of the gather partner's node", "L"),
    ("indexTensorType_", "index_type", Kind.TEXT, "index on index tensors", "L"),
    ("startAddressCoreCorelet_", "start", Kind.OBJECT, "start address of every core", "C"),
    ("padding_", "padding", Kind.OBJECT, "windowed ops only", "L"),
    ("backGapCore_", "back_gap", Kind.OBJECT, "allocated less used elements per dim, as strings", "C"),
    ("coordinates_", "coordinates", Kind.OBJECT, "how slice, stick and lane numbers make coordinates", "C"),
)

_LABELED_DS = _table(
    ("ldsIdx_", "index", Kind.INT, "operand number", "C"),
    ("dsName_", "name", Kind.TEXT, "Tensor and the operand number", "C"),
    ("dsType_", "class", Kind.TEXT, "layout class; not a role", "C"),
    ("scale_", "scale", Kind.LIST, "per class dim: 1 present, -1 reduced or broadcast, -2 that and in the stick", "C"),
    ("wordLength", "word_length", Kind.NUMBER, "bytes per element", "C"),
    ("dataFormat_", "format", Kind.TEXT, "data format", "C"),
    ("memOrg_", "memory", Kind.OBJECT, "memories that hold the operand at some time", "C"),
)

_CONSTANT = _table(
    ("dataFormat_", "format", Kind.TEXT, "the op's data format", "L"),
    ("name_", "name", Kind.TEXT, "name agreed with the back end's op library", "L"),
    ("data_", "data", Kind.OBJECT, "fold manager that holds the bit pattern", "L"),
)

_COMPUTE = _table(
    ("exUnit", "unit", Kind.TEXT, "pt for matrix ops, sfp otherwise", "C"),
    ("opFuncName", "function", Kind.TEXT, "hardware function", "C"),
    ("attributes_", "attributes", Kind.OBJECT, "data format and fidelity", "C"),
    ("location", "location", Kind.TEXT, "Inner", "C"),
    ("inputLabeledDs", "inputs", Kind.LIST, "operands read; a reduction's output is one of them", "C"),
    ("outputLabeledDs", "outputs", Kind.LIST, "the last operand", "C"),
    ("indirectAccessIndexLabeledDs", "indices", Kind.LIST, "index tensors of a gather", "L"),
    ("interimLabeledDs_", "interim", Kind.LIST, "fused temporaries; never emitted by the front end", "L"),
)

FIELDS: dict[Level, dict[str, Field]] = {
    Level.SDSC: _SDSC,
    Level.DSC: _DSC,
    Level.ALLOCATE: _ALLOCATE,
    Level.LABELED_DS: _LABELED_DS,
    Level.CONSTANT: _CONSTANT,
    Level.COMPUTE: _COMPUTE,
}


def key_of(level: Level, name: str) -> str | None:
    """Key whose name in text is `name`, or None."""
    return next((field.key for field in FIELDS[level].values() if field.name == name), None)


def in_file_order(level: Level, keys: list[str]) -> list[str]:
    """Known keys in the front end's order, then the others in the order given."""
    known = [key for key in FIELDS[level] if key in keys]
    return known + [key for key in keys if key not in FIELDS[level]]
