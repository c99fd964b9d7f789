"""Metadata of a field of the format: key, type, meaning, certainty, writer, contents."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class JsonKind(Enum):
    """Required JSON type of a field."""

    INT = "an integer"
    FLAG = "a boolean or 0/1"
    NUMBER = "a number"
    TEXT = "a string"
    OBJECT = "an object"
    LIST = "a list"
    CONSTANTS = 'an object or the string "{}"'
    ANY = "any value"


class Level(Enum):
    """Objects of the file. Those with a dotted name have an op of their own."""

    SDSC = "superdsc.sdsc"
    DSC = "superdsc.dsc"
    ALLOCATE = "superdsc.allocate"
    LABELED_DS = "superdsc.labeled_ds"
    CONSTANT = "superdsc.constant"
    COMPUTE = "superdsc.compute"
    FOLD_PROP = "fold property"
    FOLDS = "fold manager"
    FUNC = "fold function"
    AFFINE = "affine fold"
    SIZES = "sizes"
    STAGE = "stage"
    SYMBOLIC_DIM = "symbolic size"
    PADDING = "padding of one dim"
    CLASS = "layout class"
    RELATION = "relation of classes"
    MEMORIES = "memories"
    MEMORY = "one memory"
    COORDINATES = "coordinates"
    COORDINATE = "coordinate of one dim"
    ATTRIBUTES = "attributes of the operation"
    SHARE = "shared operand"
    DATA_DSC = "data-movement DSC"
    DATA_CLASS = "class of a data-movement DSC"
    DATA_OPERAND = "operand of a data-movement DSC"
    PIECE = "piece of an operand"
    PLACEMENT = "placement of a piece"
    DATA_OP = "data-movement operation"
    RESTICKIFY = "details of a stick change"


class FieldWriter(Enum):
    """Writer of a field: generations of the front end, or others."""

    ALL = "TS25, TS26, TSNEW"
    TS26 = "TS26, TSNEW"
    NEW = "TSNEW"
    RESEARCH = "research builds"
    BACK_END = "back end"
    SPEC = "specification only"


class Shape(Enum):
    """Arrangement of objects inside a field."""

    ONE = "one"
    LIST = "list of"
    MAP = "by name"
    LIST_OF_MAPS = "list of, each under its name"


@dataclass(frozen=True)
class Inner:
    """Kind and arrangement of the objects inside a field."""

    level: Level
    shape: Shape = Shape.ONE


@dataclass(frozen=True)
class Field:
    """One key of one object.

    Args:
        key: spelling in the file.
        name: spelling in the op's text; empty in objects without an op.
        kind: JSON type.
        meaning: one line.
        certainty: C, L or I.
        writer: who writes it.
        default: what the front end writes where nothing else is asked for; empty where that depends.
        allowed: the values it may have, where they are known to be all.
        inner: the objects inside.
    """

    key: str
    name: str
    kind: JsonKind
    meaning: str
    certainty: str
    writer: FieldWriter = FieldWriter.ALL
    default: str = ""
    allowed: tuple[str, ...] = ()
    inner: Inner | None = None


FieldTable = dict[str, Field]


def table(*fields: Field) -> FieldTable:
    """Return fields by key, in the order in which the front end writes them."""
    return {field.key: field for field in fields}
