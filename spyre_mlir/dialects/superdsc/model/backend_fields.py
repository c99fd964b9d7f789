"""The fields of data-movement DSCs, seen in files that the back end wrote.

One public file shows them, so each is likely at best; what the numbers of an operation mean is not public.
"""

from __future__ import annotations

from spyre_mlir.dialects.superdsc.model import keys
from spyre_mlir.dialects.superdsc.model.field import Field, Inner, Kind, Level, Shape, Table, Writer, table


def _seen(key: str, kind: Kind, meaning: str, inner: Inner | None = None) -> Field:
    return Field(key, "", kind, meaning, "L", Writer.BACK_END, inner=inner)


def _opaque(key: str, kind: Kind) -> Field:
    return Field(key, "", kind, "not public", "I", Writer.BACK_END)


BACK_END_TABLES: dict[Level, Table] = {
    Level.SHARE: table(
        _seen(keys.DS_NAME, Kind.TEXT, "name of the operand"),
        _seen(keys.SHARED_DSCS, Kind.LIST, "sets of DSC numbers that share it"),
        _opaque(keys.REPEAT_DIM, Kind.LIST),
    ),
    Level.DATA_DSC: table(
        _seen(keys.FOLD_PROPS, Kind.LIST, "time folding; one step", Inner(Level.FOLD_PROP, Shape.LIST)),
        _seen(keys.CORE_IDS, Kind.LIST, "cores that take part"),
        _seen(keys.DIM_POOL, Kind.LIST, "dims, each with an underscore behind it"),
        _seen(keys.PRIMARY_DS, Kind.LIST, "what goes in and out, with its dims", Inner(Level.DATA_CLASS, Shape.LIST)),
        _seen(keys.LABELED_DS, Kind.LIST, "the operands", Inner(Level.DATA_OPERAND, Shape.LIST)),
        _seen(keys.OP, Kind.OBJECT, "the operation", Inner(Level.DATA_OP)),
        _opaque(keys.PROGRAM_CONFIG, Kind.LIST),
        _opaque(keys.TARGET, Kind.TEXT),
    ),
    Level.DATA_CLASS: table(
        _seen(keys.NAME, Kind.TEXT, "dataIN or dataOUT"),
        _seen(keys.DIM_NAMES, Kind.LIST, "its dims"),
    ),
    Level.DATA_OPERAND: table(
        _seen(keys.OPERAND_NAME, Kind.TEXT, "name"),
        _seen(keys.OPERAND_CLASS, Kind.TEXT, "which of the classes"),
        _seen(keys.WORD_LENGTH, Kind.NUMBER, "bytes per element"),
        _seen(keys.OPERAND_FORMAT, Kind.TEXT, "data format"),
        _seen(keys.IS_EXTERNAL, Kind.FLAG, "whether it outlives the op"),
        _seen(keys.SEGMENT, Kind.TEXT, "kind of segment"),
        _seen(keys.ORDER, Kind.LIST, "dims, inner to outer"),
        _seen(keys.STICK_DIMS, Kind.LIST, "dims in the stick"),
        _seen(keys.LAYOUT_SIZES, Kind.OBJECT, "extent per dim"),
        _seen(keys.OPERAND_STICK_SIZES, Kind.OBJECT, "elements in a stick per stick dim"),
        _seen(keys.VALID_GAP, Kind.OBJECT, "per dim, pairs of valid and invalid extents"),
        _seen(keys.ELEMENTS, Kind.INT, "-1: not given"),
        _seen(keys.PIECES, Kind.LIST, "where its pieces are", Inner(Level.PIECE, Shape.LIST)),
        _seen(keys.HBM_SIZE, Kind.INT, "bytes in HBM"),
        _seen(keys.HBM_START, Kind.ANY, "address in HBM"),
        _seen(keys.LX_SIZE, Kind.INT, "bytes in LX"),
        _opaque(keys.LX_START, Kind.ANY),
    ),
    Level.PIECE: table(
        _seen(keys.PIECE_KEY, Kind.TEXT, "name of the piece"),
        _seen(keys.PIECE_START, Kind.OBJECT, "first coordinate per dim"),
        _seen(keys.PIECE_SIZE, Kind.OBJECT, "extent per dim"),
        _seen(keys.VALID_GAP, Kind.OBJECT, "per dim, pairs of valid and invalid extents"),
        _seen(keys.PLACEMENTS, Kind.LIST, "memories that hold it", Inner(Level.PLACEMENT, Shape.LIST)),
    ),
    Level.PLACEMENT: table(
        _seen(keys.PLACE_TYPE, Kind.TEXT, "lx or hbm"),
        _seen(keys.PLACE_MEMORY, Kind.LIST, "cores"),
        _seen(keys.PLACE_START, Kind.LIST, "address in each"),
    ),
    Level.DATA_OP: table(
        _seen(keys.OP_NAME, Kind.TEXT, "name of the operation"),
        *(
            _opaque(key, kind)
            for key, kind in (
                (keys.GTR_IDS, Kind.LIST),
                (keys.STICK_TRANSFERS, Kind.LIST),
                (keys.MAKES_CONSTANTS, Kind.INT),
                (keys.IMMEDIATES, Kind.INT),
                (keys.OP_CONSTANTS, Kind.LIST),
                (keys.LX_OP_CONSTANTS, Kind.OBJECT),
                (keys.CORELETS_TO_USE, Kind.INT),
                (keys.DEFAULT_CORELET, Kind.INT),
                (keys.WORK_SPLIT_DIM, Kind.TEXT),
                (keys.WORK_SPLIT, Kind.INT),
                (keys.CL0_LOAD, Kind.INT),
                (keys.CL0_STORE, Kind.INT),
                (keys.CL1_LOAD, Kind.INT),
                (keys.CL1_STORE, Kind.INT),
                (keys.USE_ARF, Kind.INT),
                (keys.IN_PLACE, Kind.INT),
            )
        ),
        _seen(keys.RESTICKIFY, Kind.OBJECT, "details of a stick change", Inner(Level.RESTICKIFY)),
        _opaque(keys.LX_EXTRA_STICK, Kind.LIST),
        _opaque(keys.INPUT_OFFSETS, Kind.OBJECT),
        _opaque(keys.OUTPUT_OFFSETS, Kind.OBJECT),
    ),
    Level.RESTICKIFY: table(
        _seen(keys.BLOCKS, Kind.INT, "blocks that a square is transposed in"),
        _seen(keys.TRANSPOSE, Kind.LIST, "extents of one block"),
        _opaque(keys.EXTRA_STICKS, Kind.INT),
        _opaque(keys.SCALE_FACTOR, Kind.INT),
        _seen(keys.INPUT_FORMAT, Kind.TEXT, "data format read"),
        _seen(keys.OUTPUT_FORMAT, Kind.TEXT, "data format written"),
        _opaque(keys.MAX_REGISTERS, Kind.INT),
        _opaque(keys.REGISTER_TYPE, Kind.INT),
    ),
}

OPERAND_BOOKKEEPING = (
    (keys.IS_STATIC, "is_static", Kind.FLAG, "whether it is the same in every run"),
    (keys.IS_FIRST_USE, "is_first_use", Kind.FLAG, "whether it is new here"),
    (keys.IS_EXTERNAL, "is_external", Kind.FLAG, "whether it outlives the op"),
    (keys.DENSITY, "density", Kind.NUMBER, "share of elements that are present"),
    (keys.LEVEL, "level", Kind.INT, "level of the schedule"),
    (keys.DATA_TRANSFERS, "data_transfers", Kind.LIST, "transfers between memories"),
    (keys.HBM_START, "hbm_start", Kind.ANY, "address in HBM"),
    (keys.LX_START, "lx_start", Kind.ANY, "address in LX"),
    (keys.HBM_SIZE, "hbm_size", Kind.INT, "bytes in HBM"),
    (keys.LX_SIZE, "lx_size", Kind.INT, "bytes in LX"),
    (keys.LX_BUFFER_SIZE, "lx_buffer_size", Kind.INT, "bytes of buffers in LX"),
    (keys.TOTAL_SLICES, "total_slices", Kind.OBJECT, "slices per dim"),
    (keys.CORE_STATE, "core_state", Kind.LIST, "initial state of cores"),
)
"""Members that only the back end adds to an operand of a compute DSC."""
