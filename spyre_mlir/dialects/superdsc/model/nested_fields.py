"""The fields of the objects inside other objects, in the order in which they are written."""

from __future__ import annotations

from spyre_mlir.dialects.superdsc.model import keys
from spyre_mlir.dialects.superdsc.model.backend_fields import BACK_END_TABLES
from spyre_mlir.dialects.superdsc.model.field import Field, Inner, Kind, Level, Shape, Table, Writer, table

LABELS = {
    "in": "input features; what a product sums over",
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
    Field(keys.NAME, "", Kind.TEXT, "n for totals, core per core, unpadn before padding", "C"),
    *(Field(f"{label}_", "", Kind.NUMBER, f"{what}; -1 for unused, or absent", "C") for label, what in LABELS.items()),
    *(Field(f"{label}_", "", Kind.NUMBER, "an old name", "C", Writer.BACK_END, "-1") for label in OLD_LABELS),
    Field(
        keys.SYMBOLIC_DIMS,
        "",
        Kind.OBJECT,
        "limits of symbolic dims, by dim",
        "L",
        Writer.NEW,
        "{}",
        inner=Inner(Level.SYMBOLIC_DIM, Shape.MAP),
    ),
    Field(keys.MAX_VOLUME, "", Kind.OBJECT, "limit on the product of several symbolic dims", "L", Writer.NEW, "{}"),
    Field(keys.CORELET_SPLIT, "", Kind.OBJECT, "work per corelet, by dim", "L", Writer.NEW, "{}"),
    Field(keys.ROW_SPLIT, "", Kind.OBJECT, "work per row of processing elements, by dim", "L", Writer.NEW, "{}"),
    Field(keys.PE_SFP_SPLIT, "", Kind.OBJECT, "work per kind of unit, by dim", "L", Writer.NEW, "{}"),
    Field(
        keys.PADDING_SIZES,
        "",
        Kind.OBJECT,
        "windows over padded dims, by dim; the dim's size is that of the output",
        "L",
        Writer.NEW,
        "{}",
        inner=Inner(Level.PADDING, Shape.MAP),
    ),
)

_PADDING = table(
    Field(keys.PAD_FRONT, "", Kind.INT, "elements before the data; -1 per core when the dim is divided", "L"),
    Field(keys.PAD_BACK, "", Kind.INT, "elements behind the data; -1 per core when the dim is divided", "L"),
    Field(keys.UNNEEDED, "", Kind.INT, "elements no window reaches; convolution by channel only", "L"),
    Field(keys.UNNEEDED_FRONT, "", Kind.INT, "of these, taken from the front padding", "L"),
    Field(keys.UNNEEDED_BACK, "", Kind.INT, "of these, taken from the back padding", "L"),
    Field(keys.TOTAL_SIZE, "", Kind.ANY, 'input extent, padding included; or "N/A"', "L"),
    Field(keys.STRIDE, "", Kind.INT, "input elements from window to window", "L", default="1"),
    Field(keys.DILATION, "", Kind.INT, "input elements from one place of a window to the next", "L", default="1"),
    Field(keys.WINDOW_DIM, "", Kind.TEXT, "dim that runs over the window", "L"),
)
_FLAG = ("0", "1")

NESTED: dict[Level, Table] = {
    Level.FOLD_PROP: table(
        Field(keys.FACTOR, "", Kind.INT, "number of steps, at least 1", "C"),
        Field(keys.LABEL, "", Kind.TEXT, "name of the fold", "C"),
    ),
    Level.FOLDS: table(
        Field(
            keys.FUNCS,
            "",
            Kind.LIST,
            "one function per fold, outermost first",
            "C",
            inner=Inner(Level.FUNC, Shape.LIST),
        ),
        Field(
            keys.PROPS,
            "",
            Kind.LIST,
            "extent and name of each fold; as many as functions",
            "C",
            inner=Inner(Level.FOLD_PROP, Shape.LIST),
        ),
        Field(keys.DATA, "", Kind.OBJECT, 'value per tuple of indices such as "[0, 0, 0]"; none in coordinates', "C"),
    ),
    Level.FUNC: table(
        Field(
            keys.AFFINE,
            "",
            Kind.OBJECT,
            "adds alpha times the index and beta",
            "C",
            inner=Inner(Level.AFFINE),
        ),
        Field(keys.CONST, "", Kind.OBJECT, "the same value for every index, kept under index 0", "C", default="{}"),
        Field(keys.MAP, "", Kind.OBJECT, "a value of its own for every index", "C", default="{}"),
        Field(keys.WK_SPLIT, "", Kind.OBJECT, "takes the index from the work slices", "L", Writer.SPEC, "{}"),
    ),
    Level.AFFINE: table(
        Field(keys.ALPHA, "", Kind.INT, "what one step adds", "C"),
        Field(keys.BETA, "", Kind.INT, "what is added in any case", "C", default="0"),
    ),
    Level.SIZES: _SIZES,
    Level.STAGE: table(
        Field(keys.NAME, "", Kind.TEXT, "name of the stage", "L", Writer.SPEC),
        Field(keys.STEADY, "", Kind.OBJECT, "sizes of one core's work", "C", inner=Inner(Level.SIZES)),
        Field(keys.EPILOGUE, "", Kind.OBJECT, "sizes of the last step; the same", "C", inner=Inner(Level.SIZES)),
    ),
    Level.SYMBOLIC_DIM: table(
        Field(keys.MAX_SIZE, "", Kind.INT, "largest value; per core in stages", "L", Writer.NEW),
        Field(keys.GRANULARITY, "", Kind.INT, "what values are multiples of; per core in stages", "L", Writer.NEW),
    ),
    Level.PADDING: _PADDING,
    Level.CLASS: table(
        Field(keys.ORDER, "", Kind.LIST, "the order that scales, limits and coordinates follow", "C"),
        Field(keys.STICK_DIMS, "", Kind.LIST, "dims in the stick, inner to outer; one, or two for FP8 weights", "C"),
        Field(keys.STICK_SIZES, "", Kind.LIST, "elements of each in one stick", "C"),
        Field(keys.STICK_REPLICATION, "", Kind.LIST, "windowed ops only", "L", Writer.NEW, "[1]"),
    ),
    Level.RELATION: table(
        Field(keys.IS_REUSE, "", Kind.FLAG, "whether classes share elements", "L", Writer.NEW, "1"),
    ),
    Level.MEMORIES: table(
        Field(keys.HBM, "", Kind.OBJECT, "device memory", "C", inner=Inner(Level.MEMORY)),
        Field(keys.LX, "", Kind.OBJECT, "scratchpad", "C", inner=Inner(Level.MEMORY)),
    ),
    Level.MEMORY: table(
        Field(keys.PRESENT, "", Kind.FLAG, "whether the operand is there", "C", default="1", allowed=_FLAG),
        Field(keys.IS_PADDED, "", Kind.FLAG, "windowed ops only: 1 on inputs", "L", Writer.NEW, allowed=_FLAG),
        Field(keys.IS_ZERO_PADDED, "", Kind.FLAG, "windowed ops only", "L", Writer.NEW, "0", _FLAG),
        Field(keys.DS_OFFSET, "", Kind.INT, "windowed ops only", "L", Writer.NEW, "0"),
        Field(keys.ALLOCATE_NODE, "", Kind.TEXT, "windowed ops only: name of the node, empty for LX", "L", Writer.NEW),
        Field(keys.GAP_PER_DIM, "", Kind.OBJECT, "gaps by dim", "L", Writer.SPEC),
    ),
    Level.COORDINATES: table(
        Field(
            keys.COORD_INFO,
            "",
            Kind.OBJECT,
            "by dim of the class",
            "C",
            inner=Inner(Level.COORDINATE, Shape.MAP),
        ),
        Field(
            keys.CORE_TO_SLICE,
            "",
            Kind.OBJECT,
            "the operand's own distribution over cores; filled by a shuffle, and in research builds",
            "L",
            default="{}",
        ),
    ),
    Level.COORDINATE: table(
        Field(keys.SPATIAL, "", Kind.INT, "folds over cores, corelets and rows", "C", default="3"),
        Field(keys.TEMPORAL, "", Kind.INT, "folds over time", "C", default="0"),
        Field(keys.ELEM_ARR, "", Kind.INT, "folds over elements: 1, in the stick 2, 4 for FP8 products", "C"),
        Field(keys.COORD_PADDING, "", Kind.TEXT, "how the dim is padded", "C", default="nopad", allowed=PAD_TYPES),
        Field(keys.FOLDS, "", Kind.OBJECT, "affine folds that add up to the coordinate", "C", inner=Inner(Level.FOLDS)),
    ),
    Level.ATTRIBUTES: table(
        Field(keys.FORMAT, "", Kind.TEXT, "format of the first data operand", "C"),
        Field(keys.FIDELITY, "", Kind.TEXT, "texts differ on the other values", "C", default="regular"),
    ),
    **BACK_END_TABLES,
}
