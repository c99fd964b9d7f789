"""The fields of data-movement DSCs, found in files written by the back end.

One public file shows them, so each is likely at best; what the numbers of an operation mean is not public.
"""

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


def _seen(key: str, kind: JsonKind, meaning: str, inner: Inner | None = None) -> Field:
    return Field(key, "", kind, meaning, "L", FieldWriter.BACK_END, inner=inner)


def _opaque(key: str, kind: JsonKind) -> Field:
    return Field(key, "", kind, "not public", "I", FieldWriter.BACK_END)


BACK_END_TABLES: dict[Level, FieldTable] = {
    Level.SHARE: table(
        _seen(keys.DS_NAME, JsonKind.TEXT, "name of the operand"),
        _seen(keys.SHARED_DSCS, JsonKind.LIST, "sets of DSC numbers that share it"),
        _opaque(keys.REPEAT_DIM, JsonKind.LIST),
    ),
    Level.DATA_DSC: table(
        _seen(keys.FOLD_PROPS, JsonKind.LIST, "time folding; one step", Inner(Level.FOLD_PROP, Shape.LIST)),
        _seen(keys.CORE_IDS, JsonKind.LIST, "cores that take part"),
        _seen(keys.DIM_POOL, JsonKind.LIST, "dims, each with an underscore behind it"),
        _seen(
            keys.PRIMARY_DS, JsonKind.LIST, "what goes in and out, with its dims", Inner(Level.DATA_CLASS, Shape.LIST)
        ),
        _seen(keys.LABELED_DS, JsonKind.LIST, "the operands", Inner(Level.DATA_OPERAND, Shape.LIST)),
        _seen(keys.OP, JsonKind.OBJECT, "the operation", Inner(Level.DATA_OP)),
        _opaque(keys.PROGRAM_CONFIG, JsonKind.LIST),
        _opaque(keys.TARGET, JsonKind.TEXT),
    ),
    Level.DATA_CLASS: table(
        _seen(keys.NAME, JsonKind.TEXT, "dataIN or dataOUT"),
        _seen(keys.DIM_NAMES, JsonKind.LIST, "its dims"),
    ),
    Level.DATA_OPERAND: table(
        _seen(keys.OPERAND_NAME, JsonKind.TEXT, "name"),
        _seen(keys.OPERAND_CLASS, JsonKind.TEXT, "which of the classes"),
        _seen(keys.WORD_LENGTH, JsonKind.NUMBER, "bytes per element"),
        _seen(keys.OPERAND_FORMAT, JsonKind.TEXT, "data format"),
        _seen(keys.IS_EXTERNAL, JsonKind.FLAG, "whether it outlives the op"),
        _seen(keys.SEGMENT, JsonKind.TEXT, "kind of segment"),
        _seen(keys.ORDER, JsonKind.LIST, "dims, inner to outer"),
        _seen(keys.STICK_DIMS, JsonKind.LIST, "dims in the stick"),
        _seen(keys.LAYOUT_SIZES, JsonKind.OBJECT, "extent per dim"),
        _seen(keys.OPERAND_STICK_SIZES, JsonKind.OBJECT, "elements in a stick per stick dim"),
        _seen(keys.VALID_GAP, JsonKind.OBJECT, "per dim, pairs of valid and invalid extents"),
        _seen(keys.ELEMENTS, JsonKind.INT, "-1: not given"),
        _seen(keys.PIECES, JsonKind.LIST, "where its pieces are", Inner(Level.PIECE, Shape.LIST)),
        _seen(keys.HBM_SIZE, JsonKind.INT, "bytes in HBM"),
        _seen(keys.HBM_START, JsonKind.ANY, "address in HBM"),
        _seen(keys.LX_SIZE, JsonKind.INT, "bytes in LX"),
        _opaque(keys.LX_START, JsonKind.ANY),
    ),
    Level.PIECE: table(
        _seen(keys.PIECE_KEY, JsonKind.TEXT, "name of the piece"),
        _seen(keys.PIECE_START, JsonKind.OBJECT, "first coordinate per dim"),
        _seen(keys.PIECE_SIZE, JsonKind.OBJECT, "extent per dim"),
        _seen(keys.VALID_GAP, JsonKind.OBJECT, "per dim, pairs of valid and invalid extents"),
        _seen(keys.PLACEMENTS, JsonKind.LIST, "memories that hold it", Inner(Level.PLACEMENT, Shape.LIST)),
    ),
    Level.PLACEMENT: table(
        _seen(keys.PLACE_TYPE, JsonKind.TEXT, "lx or hbm"),
        _seen(keys.PLACE_MEMORY, JsonKind.LIST, "cores"),
        _seen(keys.PLACE_START, JsonKind.LIST, "address in each"),
    ),
    Level.DATA_OP: table(
        _seen(keys.OP_NAME, JsonKind.TEXT, "name of the operation"),
        *(
            _opaque(key, kind)
            for key, kind in (
                (keys.GTR_IDS, JsonKind.LIST),
                (keys.STICK_TRANSFERS, JsonKind.LIST),
                (keys.MAKES_CONSTANTS, JsonKind.INT),
                (keys.IMMEDIATES, JsonKind.INT),
                (keys.OP_CONSTANTS, JsonKind.LIST),
                (keys.LX_OP_CONSTANTS, JsonKind.OBJECT),
                (keys.CORELETS_TO_USE, JsonKind.INT),
                (keys.DEFAULT_CORELET, JsonKind.INT),
                (keys.WORK_SPLIT_DIM, JsonKind.TEXT),
                (keys.WORK_SPLIT, JsonKind.INT),
                (keys.CL0_LOAD, JsonKind.INT),
                (keys.CL0_STORE, JsonKind.INT),
                (keys.CL1_LOAD, JsonKind.INT),
                (keys.CL1_STORE, JsonKind.INT),
                (keys.USE_ARF, JsonKind.INT),
                (keys.IN_PLACE, JsonKind.INT),
            )
        ),
        _seen(keys.RESTICKIFY, JsonKind.OBJECT, "details of a stick change", Inner(Level.RESTICKIFY)),
        _opaque(keys.LX_EXTRA_STICK, JsonKind.LIST),
        _opaque(keys.INPUT_OFFSETS, JsonKind.OBJECT),
        _opaque(keys.OUTPUT_OFFSETS, JsonKind.OBJECT),
    ),
    Level.RESTICKIFY: table(
        _seen(keys.BLOCKS, JsonKind.INT, "blocks that a square is transposed in"),
        _seen(keys.TRANSPOSE, JsonKind.LIST, "extents of one block"),
        _opaque(keys.EXTRA_STICKS, JsonKind.INT),
        _opaque(keys.SCALE_FACTOR, JsonKind.INT),
        _seen(keys.INPUT_FORMAT, JsonKind.TEXT, "data format read"),
        _seen(keys.OUTPUT_FORMAT, JsonKind.TEXT, "data format written"),
        _opaque(keys.MAX_REGISTERS, JsonKind.INT),
        _opaque(keys.REGISTER_TYPE, JsonKind.INT),
    ),
}

OPERAND_BOOKKEEPING = (
    (keys.IS_STATIC, "is_static", JsonKind.FLAG, "whether it is the same in every run"),
    (keys.IS_FIRST_USE, "is_first_use", JsonKind.FLAG, "whether it is new here"),
    (keys.IS_EXTERNAL, "is_external", JsonKind.FLAG, "whether it outlives the op"),
    (keys.DENSITY, "density", JsonKind.NUMBER, "share of elements that are present"),
    (keys.LEVEL, "level", JsonKind.INT, "level of the schedule"),
    (keys.DATA_TRANSFERS, "data_transfers", JsonKind.LIST, "transfers between memories"),
    (keys.HBM_START, "hbm_start", JsonKind.ANY, "address in HBM"),
    (keys.LX_START, "lx_start", JsonKind.ANY, "address in LX"),
    (keys.HBM_SIZE, "hbm_size", JsonKind.INT, "bytes in HBM"),
    (keys.LX_SIZE, "lx_size", JsonKind.INT, "bytes in LX"),
    (keys.LX_BUFFER_SIZE, "lx_buffer_size", JsonKind.INT, "bytes of buffers in LX"),
    (keys.TOTAL_SLICES, "total_slices", JsonKind.OBJECT, "slices per dim"),
    (keys.CORE_STATE, "core_state", JsonKind.LIST, "initial state of cores"),
)
"""Members that only the back end adds to an operand of a compute DSC."""
