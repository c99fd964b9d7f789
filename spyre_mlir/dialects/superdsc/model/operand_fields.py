"""The fields of a DSC's operands, constants and operation, in the order in which the front end writes them."""

from __future__ import annotations

from spyre_mlir.dialects.superdsc.model import keys
from spyre_mlir.dialects.superdsc.model.backend_fields import OPERAND_BOOKKEEPING
from spyre_mlir.dialects.superdsc.model.field import Field, FieldTable, FieldWriter, Inner, JsonKind, Level, table

NO_INDIRECTION = "no_indirection"
INDIRECTIONS = (NO_INDIRECTION, "index_tensor", "value_tensor")
SCALES = (1, -1, -2)

ALLOCATE: FieldTable = table(
    Field(
        keys.NODE_TYPE,
        "node_type",
        JsonKind.TEXT,
        "kind of node; the back end has others than allocate",
        "C",
        default="allocate",
    ),
    Field(keys.NAME, "name", JsonKind.TEXT, "allocate-Tensor, operand number, _ and component", "C"),
    Field(keys.PREV, "prev", JsonKind.TEXT, "previous node", "C", default='""'),
    Field(keys.INDEX, "index", JsonKind.INT, "operand number", "C"),
    Field(
        keys.COMPONENT, "component", JsonKind.TEXT, "memory that holds the operand", "C", allowed=(keys.HBM, keys.LX)
    ),
    Field(
        keys.SYMBOLIC,
        "symbolic",
        JsonKind.FLAG,
        "whether start addresses are symbol ids; never in LX",
        "C",
        FieldWriter.TS26,
        "absent: byte addresses",
    ),
    Field(keys.ORDER, "order", JsonKind.LIST, "dims of the operand, inner to outer, reduced ones last", "C"),
    Field(
        keys.MAX_SIZES,
        "max_sizes",
        JsonKind.LIST,
        "per dim of the order, a limit on gathered dims",
        "C",
        default="-1 each",
    ),
    Field(
        keys.INDIRECT,
        "indirect",
        JsonKind.TEXT,
        "part of the operand in a gather",
        "C",
        FieldWriter.TS26,
        NO_INDIRECTION,
        INDIRECTIONS,
    ),
    Field(
        keys.INDIRECT_PARTNER,
        "indirect_partner",
        JsonKind.TEXT,
        "name of the gather partner's node",
        "L",
        FieldWriter.TS26,
    ),
    Field(
        keys.INDEX_TYPE,
        "index_type",
        JsonKind.TEXT,
        "on index tensors: meaning of the numbers",
        "L",
        FieldWriter.TS26,
        "index",
        ("index", "address"),
    ),
    Field(
        keys.START,
        "start",
        JsonKind.OBJECT,
        'start address of every core under "[core, 0, 0]"',
        "C",
        inner=Inner(Level.FOLDS),
    ),
    Field(
        keys.PADDING,
        "padding",
        JsonKind.OBJECT,
        "windowed ops only: how each padded dim of the input is laid out",
        "L",
        FieldWriter.NEW,
    ),
    Field(
        keys.BACK_GAP,
        "back_gap",
        JsonKind.OBJECT,
        'allocated less used elements per dim, as strings: under "-1" in HBM, per core in LX',
        "C",
        default="absent: none",
    ),
    Field(
        keys.COORDINATES,
        "coordinates",
        JsonKind.OBJECT,
        "how slice, stick and lane numbers make coordinates",
        "C",
        inner=Inner(Level.COORDINATES),
    ),
    Field(
        keys.ALLOCATE_COORDINATES,
        "allocate_coordinates",
        JsonKind.LIST,
        "another form of the coordinates",
        "L",
        FieldWriter.SPEC,
    ),
)

LABELED_DS: FieldTable = table(
    Field(keys.INDEX, "index", JsonKind.INT, "operand number", "C"),
    Field(keys.DS_NAME, "name", JsonKind.TEXT, "Tensor and the operand number", "C"),
    Field(
        keys.CLASS,
        "class",
        JsonKind.TEXT,
        "label of the layout class; not a role",
        "C",
        allowed=("INPUT", "OUTPUT", "KERNEL", "KERNEL_IDX"),
    ),
    Field(
        keys.SCALE,
        "scale",
        JsonKind.LIST,
        "per class dim: 1 present, -1 reduced or broadcast, -2 that and in the stick",
        "C",
    ),
    Field(keys.WORD_LENGTH, "word_length", JsonKind.NUMBER, "bytes per element", "C"),
    Field(keys.FORMAT, "format", JsonKind.TEXT, "data format", "C"),
    Field(
        keys.MEMORY,
        "memory",
        JsonKind.OBJECT,
        "memories that hold the operand at some time; one in HBM passes through LX",
        "C",
        inner=Inner(Level.MEMORIES),
    ),
    *(Field(key, name, kind, meaning, "L", FieldWriter.BACK_END) for key, name, kind, meaning in OPERAND_BOOKKEEPING),
)

CONSTANT: FieldTable = table(
    Field(keys.FORMAT, "format", JsonKind.TEXT, "the op's data format", "L"),
    Field(keys.NAME, "name", JsonKind.TEXT, "name agreed with the back end's op library", "L"),
    Field(
        keys.DATA,
        "data",
        JsonKind.OBJECT,
        "fold manager that holds the bit pattern: an FP32 word, otherwise a DL16 code; TSNEW writes it as a string",
        "L",
        inner=Inner(Level.FOLDS),
    ),
)

COMPUTE: FieldTable = table(
    Field(keys.UNIT, "unit", JsonKind.TEXT, "execution unit", "C", allowed=("pt", "sfp")),
    Field(keys.FUNCTION, "function", JsonKind.TEXT, "hardware function", "C"),
    Field(
        keys.ATTRIBUTES,
        "attributes",
        JsonKind.OBJECT,
        "data format and fidelity",
        "C",
        inner=Inner(Level.ATTRIBUTES),
    ),
    Field(
        keys.LOCATION,
        "location",
        JsonKind.TEXT,
        "place in the loop nest; one specification forbids it",
        "C",
        default="Inner",
    ),
    Field(keys.INPUTS, "inputs", JsonKind.LIST, "operands read; a reduction's output is one of them", "C"),
    Field(keys.OUTPUTS, "outputs", JsonKind.LIST, "the last operand", "C"),
    Field(keys.INDICES, "indices", JsonKind.LIST, "index tensors of a gather", "L", FieldWriter.TS26),
    Field(keys.INTERIM, "interim", JsonKind.LIST, "temporaries of fused ops", "L", FieldWriter.SPEC),
)
