"""The fields of the file's object and of a DSC, in the order in which the front end writes them."""

from __future__ import annotations

from spyre_mlir.dialects.superdsc.model import keys
from spyre_mlir.dialects.superdsc.model.field import (
    Field,
    FieldTable,
    FieldWriter,
    Inner,
    JsonKind,
    Level,
    Shape,
    table,
)
from spyre_mlir.dialects.superdsc.model.operand_fields import ALLOCATE, COMPUTE, CONSTANT, LABELED_DS

_ONE_TIME = '[{"factor_": 1, "label_": "time"}]'
_MANAGER = Inner(Level.FOLDS)
_SIZES = Inner(Level.SIZES)

SDSC: FieldTable = table(
    Field(keys.DEBUG_HANDLE, "debug_handle", JsonKind.ANY, "link to the source op", "L", FieldWriter.NEW, "null"),
    Field(
        keys.SDSC_FOLD_PROPS,
        "fold_props",
        JsonKind.LIST,
        "time folding of the whole SDSC; always one step",
        "C",
        default=_ONE_TIME,
        inner=Inner(Level.FOLD_PROP, Shape.LIST),
    ),
    Field(
        keys.SDSC_FOLDS, "folds", JsonKind.OBJECT, "fold manager of the SDSC; always the identity", "C", inner=_MANAGER
    ),
    Field(
        keys.CORE_FOLD,
        "core_fold",
        JsonKind.OBJECT,
        "number of cores and their label, core",
        "C",
        inner=Inner(Level.FOLD_PROP),
    ),
    Field(
        keys.CORELET_FOLD,
        "corelet_fold",
        JsonKind.OBJECT,
        "number of corelets per core: written as 1, though texts say 2; label corelet",
        "C",
        inner=Inner(Level.FOLD_PROP),
    ),
    Field(keys.CORES_USED, "cores_used", JsonKind.INT, "number of cores: the product of the splits", "C"),
    Field(
        keys.CORE_TO_DSC, "core_to_dsc", JsonKind.OBJECT, "which DSC each core runs", "C", default="0 for every core"
    ),
    Field(keys.SPLITS, "splits", JsonKind.OBJECT, "work slices per dim, in iteration order", "C"),
    Field(keys.CORE_TO_SLICE, "core_to_slice", JsonKind.OBJECT, "slice of every dim each core works on", "C"),
    Field(
        keys.SCHEDULE,
        "schedule",
        JsonKind.OBJECT,
        "per core, steps of data-movement DSC, compute DSC, sync before, sync after; -1 for none",
        "C",
        default="[[-1, 0, 0, 0]] for every core",
    ),
    Field(keys.LX_RELAYOUT, "lx_relayout", JsonKind.ANY, "only in research builds", "L", FieldWriter.RESEARCH),
    Field(keys.ON_CHIP_MOVE, "on_chip_move", JsonKind.ANY, "only in research builds", "L", FieldWriter.RESEARCH),
    Field(keys.STREAMING_LX, "streaming_lx", JsonKind.ANY, "only in research builds", "L", FieldWriter.RESEARCH),
    Field(
        keys.DSCS,
        "dscs",
        JsonKind.LIST,
        "the compute DSCs, each under the function's name; exactly one as emitted",
        "C",
        inner=Inner(Level.DSC, Shape.LIST_OF_MAPS),
    ),
    Field(
        keys.DATA_DSCS,
        "data_dscs",
        JsonKind.LIST,
        "data-movement DSCs, written by the back end; the front end writes an empty list beside symbolic sizes",
        "L",
        FieldWriter.BACK_END,
        inner=Inner(Level.DATA_DSC, Shape.LIST_OF_MAPS),
    ),
    Field(
        keys.DATA_OP_DSCS,
        "data_op_dscs",
        JsonKind.LIST,
        "schema's name of the data-movement DSCs",
        "L",
        FieldWriter.SPEC,
        inner=Inner(Level.DATA_DSC, Shape.LIST_OF_MAPS),
    ),
    Field(
        keys.OP_FUNCS_USED, "op_funcs_used", JsonKind.LIST, "names of data-movement ops used", "L", FieldWriter.BACK_END
    ),
    Field(
        keys.TARGET,
        "target",
        JsonKind.TEXT,
        "back-end target",
        "C",
        FieldWriter.BACK_END,
        allowed=("senulator", "sentient", "senpcfg", "sentf", "host", "SYSTEMC", "R5SS"),
    ),
    Field(
        keys.SIZES,
        "sizes",
        JsonKind.OBJECT,
        "all dims of all DSCs, -1 for unused",
        "C",
        FieldWriter.BACK_END,
        inner=_SIZES,
    ),
    Field(
        keys.UNPADDED_SIZES,
        "unpadded_sizes",
        JsonKind.OBJECT,
        "sizes before padding",
        "C",
        FieldWriter.BACK_END,
        inner=_SIZES,
    ),
    Field(
        keys.SHARE_INFO,
        "share_info",
        JsonKind.LIST,
        "operands shared by several DSCs; empty for one",
        "C",
        FieldWriter.BACK_END,
        inner=Inner(Level.SHARE, Shape.LIST),
    ),
    Field(keys.PRODUCERS, "producers", JsonKind.OBJECT, "bookkeeping", "C", FieldWriter.BACK_END, "{}"),
    Field(keys.PROGRAM_CONFIG, "program_config", JsonKind.ANY, "bookkeeping", "C", FieldWriter.BACK_END, "{}"),
    Field(keys.SPB, "spb", JsonKind.ANY, "bookkeeping", "L", FieldWriter.BACK_END),
    Field(keys.FOLD_COORD, "fold_coord", JsonKind.LIST, "bookkeeping", "C", FieldWriter.BACK_END, "[]"),
    Field(keys.FOLDED_NAME, "folded_name", JsonKind.TEXT, "bookkeeping", "C", FieldWriter.BACK_END, '""'),
    Field(
        keys.SYMBOL_CORRECTION,
        "symbol_correction",
        JsonKind.OBJECT,
        "corrections of opcodes by symbols; symbolic sizes only",
        "L",
        FieldWriter.NEW,
        "{}",
    ),
    Field(
        keys.INPUT_SYMBOLS,
        "input_symbols",
        JsonKind.OBJECT,
        "symbol id to the name of the size; symbolic sizes only",
        "L",
        FieldWriter.NEW,
    ),
    Field(
        keys.SYMBOL_DEFINITIONS,
        "symbol_definitions",
        JsonKind.OBJECT,
        "symbols made of other symbols; symbolic sizes only",
        "L",
        FieldWriter.NEW,
        "{}",
    ),
)

_BACK_END_SIZES = (
    (keys.DSC_SIZES, "dsc_sizes", "of the DSC"),
    (keys.CHIP_SIZES, "chip_sizes", "per chip"),
    (keys.CHIPLET_SIZES, "chiplet_sizes", "per chiplet"),
    (keys.CORE_SIZES, "core_sizes", "per core"),
    (keys.CORELET_SIZES, "corelet_sizes", "per corelet"),
    (keys.BLOCK_SIZES, "block_sizes", "per block"),
    (keys.TIME_SIZES, "time_sizes", "per time step"),
    (keys.TIME_EPILOGUE, "time_epilogue", "per time step, epilogue"),
    (keys.PE_SIZES, "pe_sizes", "per processing element"),
    (keys.PE_EPILOGUE, "pe_epilogue", "per processing element, epilogue"),
    (keys.UNPADDED_SIZES, "unpadded_sizes", "before padding"),
)

DSC: FieldTable = table(
    Field(keys.CORES_USED, "cores_used", JsonKind.INT, "same as of the SDSC", "C"),
    Field(keys.CORELETS_USED, "corelets_used", JsonKind.INT, "corelets per core", "C", default="1"),
    Field(keys.CORE_IDS, "core_ids", JsonKind.LIST, "0 to the number of cores less one", "C"),
    Field(keys.SIZES, "sizes", JsonKind.OBJECT, "padded size of every iteration dim over all cores", "C", inner=_SIZES),
    Field(
        keys.MASKING,
        "masking",
        JsonKind.OBJECT,
        "per padded dim that is reduced in the stick, pairs of valid and padding extents",
        "L",
        default="{}",
    ),
    Field(
        keys.MASK_CONSTANT,
        "mask_constant",
        JsonKind.INT,
        "number of the constant that fills masked lanes; -1 none",
        "C",
        default="-1",
    ),
    Field(
        keys.SYMBOL_MAPPING,
        "symbol_mapping",
        JsonKind.OBJECT,
        "per symbolic dim, the ids of its size symbols; symbolic sizes only",
        "L",
        FieldWriter.NEW,
    ),
    Field(
        keys.STAGES,
        "stages",
        JsonKind.OBJECT,
        'under "0", the per-core sizes of the steady state and of the epilogue; equal as emitted',
        "C",
        inner=Inner(Level.STAGE, Shape.MAP),
    ),
    Field(
        keys.CLASSES,
        "classes",
        JsonKind.OBJECT,
        "layout classes by label: the dim order that scales follow, stick dims and sizes",
        "C",
        inner=Inner(Level.CLASS, Shape.MAP),
    ),
    Field(
        keys.CLASS_RELATION,
        "class_relation",
        JsonKind.OBJECT,
        "windowed ops only",
        "L",
        FieldWriter.NEW,
        inner=Inner(Level.RELATION),
    ),
    Field(
        keys.SCHEDULE_TREE,
        "schedule_tree",
        JsonKind.LIST,
        "one allocate node per operand, in operand order",
        "C",
        inner=Inner(Level.ALLOCATE, Shape.LIST),
    ),
    Field(
        keys.LABELED_DS,
        "labeled_ds",
        JsonKind.LIST,
        "the operands, at most eight",
        "C",
        inner=Inner(Level.LABELED_DS, Shape.LIST),
    ),
    Field(
        keys.CONSTANTS,
        "constants",
        JsonKind.CONSTANTS,
        "named scalars by number; none is the string",
        "L",
        default='"{}"',
        inner=Inner(Level.CONSTANT, Shape.MAP),
    ),
    Field(
        keys.COMPUTE,
        "compute",
        JsonKind.LIST,
        "the operation; exactly one",
        "C",
        inner=Inner(Level.COMPUTE, Shape.LIST),
    ),
    *(
        Field(key, name, JsonKind.OBJECT, f"sizes {what}", "L", FieldWriter.BACK_END, inner=_SIZES)
        for key, name, what in _BACK_END_SIZES
    ),
    Field(keys.LOOP_ORDER, "loop_order", JsonKind.LIST, "loop plan", "L", FieldWriter.BACK_END),
    Field(keys.LOOP_PROPERTIES, "loop_properties", JsonKind.OBJECT, "loop plan", "L", FieldWriter.BACK_END),
    Field(keys.AUX_LOOP_ORDER, "aux_loop_order", JsonKind.OBJECT, "loop plan", "L", FieldWriter.BACK_END),
    Field(
        keys.SCATTERED_HBM,
        "scattered_hbm",
        JsonKind.FLAG,
        "whether a tensor is not one piece of memory",
        "L",
        FieldWriter.SPEC,
        "absent: one piece",
    ),
)

OP_TABLES: dict[Level, FieldTable] = {
    Level.SDSC: SDSC,
    Level.DSC: DSC,
    Level.ALLOCATE: ALLOCATE,
    Level.LABELED_DS: LABELED_DS,
    Level.CONSTANT: CONSTANT,
    Level.COMPUTE: COMPUTE,
}
