"""The fields of the objects inside other objects, in the order in which they are written."""

from __future__ import annotations

from spyre_mlir.dialects.superdsc.model import keys
from spyre_mlir.dialects.superdsc.model.backend_fields import BACK_END_TABLES
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

LABELS = {
    "in": "input features; the dim that a product sums over",
    "out": "output features; the last dim of most ops",
    "mb": "batch",
    "i": "rows of the output image",
    "j": "columns of the output image",
    "ki": "rows of the window",
    "kj": "columns of the window",
    "x": "repeats without reuse, as attention heads",
    "x1": "more repeats without reuse",
    "y": "reuse of the kernel, as time",
}
"""Names of dims; inside an object of sizes each has an underscore behind it."""

OLD_LABELS = ("r", "c", "ij", "rc", "kij", "sij", "zij", "si", "sj", "zi", "zj")

PAD_TYPES = (
    "nopad",
    "lowered_padded",
    "padded_nozeropad",
    "padded_wzeropad",
    "padded_fullspan",
    "padded_fullspan_wunneeded",
)

_SIZES = table(
    Field(keys.NAME, "", JsonKind.TEXT, "n for totals, core per core, unpadn before padding", "C"),
    *(
        Field(f"{label}_", "", JsonKind.NUMBER, f"{what}; -1 for unused, or absent", "C")
        for label, what in LABELS.items()
    ),
    *(Field(f"{label}_", "", JsonKind.NUMBER, "an old name", "C", FieldWriter.BACK_END, "-1") for label in OLD_LABELS),
    Field(
        keys.SYMBOLIC_DIMS,
        "",
        JsonKind.OBJECT,
        "limits of symbolic dims, by dim",
        "L",
        FieldWriter.NEW,
        "{}",
        inner=Inner(Level.SYMBOLIC_DIM, Shape.MAP),
    ),
    Field(
        keys.MAX_VOLUME,
        "",
        JsonKind.OBJECT,
        "limit on the product of several symbolic dims",
        "L",
        FieldWriter.NEW,
        "{}",
    ),
    Field(keys.CORELET_SPLIT, "", JsonKind.OBJECT, "work per corelet, by dim", "L", FieldWriter.NEW, "{}"),
    Field(
        keys.ROW_SPLIT, "", JsonKind.OBJECT, "work per row of processing elements, by dim", "L", FieldWriter.NEW, "{}"
    ),
    Field(keys.PE_SFP_SPLIT, "", JsonKind.OBJECT, "work per kind of unit, by dim", "L", FieldWriter.NEW, "{}"),
    Field(
        keys.PADDING_SIZES,
        "",
        JsonKind.OBJECT,
        "windows over padded dims, by dim; the dim's size is that of the output",
        "L",
        FieldWriter.NEW,
        "{}",
        inner=Inner(Level.PADDING, Shape.MAP),
    ),
)

_PADDING = table(
    Field(keys.PAD_FRONT, "", JsonKind.INT, "elements before the data; -1 per core when the dim is divided", "L"),
    Field(keys.PAD_BACK, "", JsonKind.INT, "elements behind the data; -1 per core when the dim is divided", "L"),
    Field(keys.UNNEEDED, "", JsonKind.INT, "elements no window reaches; convolution by channel only", "L"),
    Field(keys.UNNEEDED_FRONT, "", JsonKind.INT, "of these, taken from the front padding", "L"),
    Field(keys.UNNEEDED_BACK, "", JsonKind.INT, "of these, taken from the back padding", "L"),
    Field(keys.TOTAL_SIZE, "", JsonKind.ANY, 'input extent, padding included; or "N/A"', "L"),
    Field(keys.STRIDE, "", JsonKind.INT, "input elements from window to window", "L", default="1"),
    Field(keys.DILATION, "", JsonKind.INT, "input elements from one place of a window to the next", "L", default="1"),
    Field(keys.WINDOW_DIM, "", JsonKind.TEXT, "dim that runs over the window", "L"),
)
_FLAG = ("0", "1")

NESTED: dict[Level, FieldTable] = {
    Level.FOLD_PROP: table(
        Field(keys.FACTOR, "", JsonKind.INT, "number of steps, at least 1", "C"),
        Field(keys.LABEL, "", JsonKind.TEXT, "name of the fold", "C"),
    ),
    Level.FOLDS: table(
        Field(
            keys.FUNCS,
            "",
            JsonKind.LIST,
            "one function per fold, outermost first",
            "C",
            inner=Inner(Level.FUNC, Shape.LIST),
        ),
        Field(
            keys.PROPS,
            "",
            JsonKind.LIST,
            "extent and name of each fold; as many as functions",
            "C",
            inner=Inner(Level.FOLD_PROP, Shape.LIST),
        ),
        Field(
            keys.DATA, "", JsonKind.OBJECT, 'value per tuple of indices such as "[0, 0, 0]"; none in coordinates', "C"
        ),
    ),
    Level.FUNC: table(
        Field(
            keys.AFFINE,
            "",
            JsonKind.OBJECT,
            "adds alpha times the index and beta",
            "C",
            inner=Inner(Level.AFFINE),
        ),
        Field(keys.CONST, "", JsonKind.OBJECT, "the same value for every index, kept under index 0", "C", default="{}"),
        Field(keys.MAP, "", JsonKind.OBJECT, "a value of its own for every index", "C", default="{}"),
        Field(keys.WK_SPLIT, "", JsonKind.OBJECT, "takes the index from the work slices", "L", FieldWriter.SPEC, "{}"),
    ),
    Level.AFFINE: table(
        Field(keys.ALPHA, "", JsonKind.INT, "what one step adds", "C"),
        Field(keys.BETA, "", JsonKind.INT, "constant term", "C", default="0"),
    ),
    Level.SIZES: _SIZES,
    Level.STAGE: table(
        Field(keys.NAME, "", JsonKind.TEXT, "name of the stage", "L", FieldWriter.SPEC),
        Field(keys.STEADY, "", JsonKind.OBJECT, "sizes of one core's work", "C", inner=Inner(Level.SIZES)),
        Field(keys.EPILOGUE, "", JsonKind.OBJECT, "sizes of the last step; the same", "C", inner=Inner(Level.SIZES)),
    ),
    Level.SYMBOLIC_DIM: table(
        Field(keys.MAX_SIZE, "", JsonKind.INT, "largest value; per core in stages", "L", FieldWriter.NEW),
        Field(
            keys.GRANULARITY, "", JsonKind.INT, "what values are multiples of; per core in stages", "L", FieldWriter.NEW
        ),
    ),
    Level.PADDING: _PADDING,
    Level.CLASS: table(
        Field(keys.ORDER, "", JsonKind.LIST, "the order that scales, limits and coordinates follow", "C"),
        Field(
            keys.STICK_DIMS, "", JsonKind.LIST, "dims in the stick, inner to outer; one, or two for FP8 weights", "C"
        ),
        Field(keys.STICK_SIZES, "", JsonKind.LIST, "elements of each in one stick", "C"),
        Field(keys.STICK_REPLICATION, "", JsonKind.LIST, "windowed ops only", "L", FieldWriter.NEW, "[1]"),
    ),
    Level.RELATION: table(
        Field(keys.IS_REUSE, "", JsonKind.FLAG, "whether classes share elements", "L", FieldWriter.NEW, "1"),
    ),
    Level.MEMORIES: table(
        Field(keys.HBM, "", JsonKind.OBJECT, "device memory", "C", inner=Inner(Level.MEMORY)),
        Field(keys.LX, "", JsonKind.OBJECT, "scratchpad", "C", inner=Inner(Level.MEMORY)),
    ),
    Level.MEMORY: table(
        Field(keys.PRESENT, "", JsonKind.FLAG, "whether the operand is there", "C", default="1", allowed=_FLAG),
        Field(keys.IS_PADDED, "", JsonKind.FLAG, "windowed ops only: 1 on inputs", "L", FieldWriter.NEW, allowed=_FLAG),
        Field(keys.IS_ZERO_PADDED, "", JsonKind.FLAG, "windowed ops only", "L", FieldWriter.NEW, "0", _FLAG),
        Field(keys.DS_OFFSET, "", JsonKind.INT, "windowed ops only", "L", FieldWriter.NEW, "0"),
        Field(
            keys.ALLOCATE_NODE,
            "",
            JsonKind.TEXT,
            "windowed ops only: name of the node, empty for LX",
            "L",
            FieldWriter.NEW,
        ),
        Field(keys.GAP_PER_DIM, "", JsonKind.OBJECT, "gaps by dim", "L", FieldWriter.SPEC),
    ),
    Level.COORDINATES: table(
        Field(
            keys.COORD_INFO,
            "",
            JsonKind.OBJECT,
            "by dim of the class",
            "C",
            inner=Inner(Level.COORDINATE, Shape.MAP),
        ),
        Field(
            keys.CORE_TO_SLICE,
            "",
            JsonKind.OBJECT,
            "the operand's own distribution over cores; filled by a shuffle, and in research builds",
            "L",
            default="{}",
        ),
    ),
    Level.COORDINATE: table(
        Field(keys.SPATIAL, "", JsonKind.INT, "folds over cores, corelets and rows", "C", default="3"),
        Field(keys.TEMPORAL, "", JsonKind.INT, "folds over time", "C", default="0"),
        Field(keys.ELEM_ARR, "", JsonKind.INT, "folds over elements: 1, in the stick 2, 4 for FP8 products", "C"),
        Field(keys.COORD_PADDING, "", JsonKind.TEXT, "how the dim is padded", "C", default="nopad", allowed=PAD_TYPES),
        Field(
            keys.FOLDS, "", JsonKind.OBJECT, "affine folds that add up to the coordinate", "C", inner=Inner(Level.FOLDS)
        ),
    ),
    Level.ATTRIBUTES: table(
        Field(keys.FORMAT, "", JsonKind.TEXT, "format of the first data operand", "C"),
        Field(keys.FIDELITY, "", JsonKind.TEXT, "texts differ on the other values", "C", default="regular"),
    ),
    **BACK_END_TABLES,
}
