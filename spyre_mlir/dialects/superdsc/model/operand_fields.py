"""The fields of a DSC's operands, constants and operation, in the order in which the front end writes them."""

from __future__ import annotations

from spyre_mlir.dialects.superdsc.model import keys
from spyre_mlir.dialects.superdsc.model.backend_fields import OPERAND_BOOKKEEPING
from spyre_mlir.dialects.superdsc.model.field import Field, Inner, Kind, Level, Table, Writer, table

ALLOCATE: Table = table(
    Field(
        keys.NODE_TYPE,
        "node_type",
        Kind.TEXT,
        "kind of node; the back end has others than allocate",
        "C",
        default="allocate",
    ),
    Field(keys.NAME, "name", Kind.TEXT, "allocate-Tensor, operand number, _ and component", "C"),
    Field(keys.PREV, "prev", Kind.TEXT, "previous node", "C", default='""'),
    Field(keys.INDEX, "index", Kind.INT, "operand number", "C"),
    Field(keys.COMPONENT, "component", Kind.TEXT, "memory that holds the operand", "C", allowed=(keys.HBM, keys.LX)),
    Field(
        keys.SYMBOLIC,
        "symbolic",
        Kind.FLAG,
        "whether start addresses are symbol ids; never in LX",
        "C",
        Writer.TS26,
        "absent: byte addresses",
    ),
    Field(keys.ORDER, "order", Kind.LIST, "dims of the operand, inner to outer, reduced ones last", "C"),
    Field(
        keys.MAX_SIZES, "max_sizes", Kind.LIST, "per dim of the order, a limit on gathered dims", "C", default="-1 each"
    ),
    Field(
        keys.INDIRECT,
        "indirect",
        Kind.TEXT,
        "part of the operand in a gather",
        "C",
        Writer.TS26,
        "no_indirection",
        ("no_indirection", "index_tensor", "value_tensor"),
    ),
    Field(
        keys.INDIRECT_PARTNER,
        "indirect_partner",
        Kind.TEXT,
        "name of the gather partner's node",
        "L",
        Writer.TS26,
    ),
    Field(
        keys.INDEX_TYPE,
        "index_type",
        Kind.TEXT,
        "on index tensors: what the numbers are",
        "L",
        Writer.TS26,
        "index",
        ("index", "address"),
    ),
    Field(
        keys.START,
        "start",
        Kind.OBJECT,
        'start address of every core under "[core, 0, 0]"',
        "C",
        inner=Inner(Level.FOLDS),
    ),
    Field(
        keys.PADDING,
        "padding",
        Kind.OBJECT,
        "windowed ops only: how each padded dim of the input is laid out",
        "L",
        Writer.NEW,
    ),
    Field(
        keys.BACK_GAP,
        "back_gap",
        Kind.OBJECT,
        'allocated less used elements per dim, as strings: under "-1" in HBM, per core in LX',
        "C",
        default="absent: none",
    ),
    Field(
        keys.COORDINATES,
        "coordinates",
        Kind.OBJECT,
        "how slice, stick and lane numbers make coordinates",
        "C",
        inner=Inner(Level.COORDINATES),
    ),
    Field(
        keys.ALLOCATE_COORDINATES,
        "allocate_coordinates",
        Kind.LIST,
        "another form of the coordinates",
        "L",
        Writer.SPEC,
    ),
)

LABELED_DS: Table = table(
    Field(keys.INDEX, "index", Kind.INT, "operand number", "C"),
    Field(keys.DS_NAME, "name", Kind.TEXT, "Tensor and the operand number", "C"),
    Field(
        keys.CLASS,
        "class",
        Kind.TEXT,
        "label of the layout class; not a role",
        "C",
        allowed=("INPUT", "OUTPUT", "KERNEL", "KERNEL_IDX"),
    ),
    Field(
        keys.SCALE,
        "scale",
        Kind.LIST,
        "per class dim: 1 present, -1 reduced or broadcast, -2 that and in the stick",
        "C",
    ),
    Field(keys.WORD_LENGTH, "word_length", Kind.NUMBER, "bytes per element", "C"),
    Field(keys.FORMAT, "format", Kind.TEXT, "data format", "C"),
    Field(
        keys.MEMORY,
        "memory",
        Kind.OBJECT,
        "memories that hold the operand at some time; one in HBM passes through LX",
        "C",
        inner=Inner(Level.MEMORIES),
    ),
    *(Field(key, name, kind, meaning, "L", Writer.BACK_END) for key, name, kind, meaning in OPERAND_BOOKKEEPING),
)

CONSTANT: Table = table(
    Field(keys.FORMAT, "format", Kind.TEXT, "the op's data format", "L"),
    Field(keys.NAME, "name", Kind.TEXT, "name agreed with the back end's op library", "L"),
    Field(
        keys.DATA,
        "data",
        Kind.OBJECT,
        "fold manager that holds the bit pattern: an FP32 word, otherwise a DL16 code; TSNEW writes it as a string",
        "L",
        inner=Inner(Level.FOLDS),
    ),
)

COMPUTE: Table = table(
    Field(keys.UNIT, "unit", Kind.TEXT, "execution unit", "C", allowed=("pt", "sfp")),
    Field(keys.FUNCTION, "function", Kind.TEXT, "hardware function", "C"),
    Field(
        keys.ATTRIBUTES,
        "attributes",
        Kind.OBJECT,
        "data format and fidelity",
        "C",
        inner=Inner(Level.ATTRIBUTES),
    ),
    Field(
        keys.LOCATION,
        "location",
        Kind.TEXT,
        "place in the loop nest; one specification forbids it",
        "C",
        default="Inner",
    ),
    Field(keys.INPUTS, "inputs", Kind.LIST, "operands read; a reduction's output is one of them", "C"),
    Field(keys.OUTPUTS, "outputs", Kind.LIST, "the last operand", "C"),
    Field(keys.INDICES, "indices", Kind.LIST, "index tensors of a gather", "L", Writer.TS26),
    Field(keys.INTERIM, "interim", Kind.LIST, "temporaries of fused ops", "L", Writer.SPEC),
)
