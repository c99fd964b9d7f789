"""Every field of the SuperDSC JSON by object: the typed model shared by reader, writer, checker and reference page.

The order of a table is the order in which the front end writes the keys. Certainty: C certain (front-end code and a
real file agree, or two independent sources), L likely (one source), I inferred.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from spyre_mlir.dialects.superdsc.model.field import Field, FieldTable, FieldWriter, Inner, JsonKind, Level, Shape
from spyre_mlir.dialects.superdsc.model.field_tables import OP_TABLES
from spyre_mlir.dialects.superdsc.model.json_value import Json
from spyre_mlir.dialects.superdsc.model.nested_fields import NESTED

__all__ = [
    "FIELDS",
    "Field",
    "FieldWriter",
    "Inner",
    "JsonKind",
    "Level",
    "Shape",
    "Visit",
    "in_file_order",
    "key_of",
    "visit",
]

FIELDS: dict[Level, FieldTable] = {**OP_TABLES, **NESTED}


def key_of(level: Level, name: str) -> str | None:
    """Return the key whose name in text is `name`, or None."""
    return next((field.key for field in FIELDS[level].values() if field.name == name), None)


def in_file_order(level: Level, keys: Iterable[str]) -> list[str]:
    """Return known keys in the front end's order, then the others in the order given."""
    given = dict.fromkeys(keys)
    known = [key for key in FIELDS[level] if key in given]
    return known if len(known) == len(given) else known + [key for key in given if key not in FIELDS[level]]


class Visit(NamedTuple):
    """One member of one object of a file; a tuple, because a file has thousands of them.

    Attributes:
        path: where it is.
        level: what the object is.
        key: the member's key.
        value: its value.
        field: what the model says about it; None where it does not know the key.
    """

    path: str
    level: Level
    key: str
    value: Json
    field: Field | None


def visit(value: Json, level: Level = Level.SDSC, path: str = "$") -> Iterator[Visit]:
    """Visit every member of an object and of the objects that the model knows inside it, in file order.

    What is not of the shape the model expects is not entered; its own visit says so by the field's kind.
    """
    if not isinstance(value, dict):
        return
    for key, member in value.items():
        field, place = FIELDS[level].get(key), f"{path}.{key}"
        yield Visit(place, level, key, member, field)
        if field is not None and field.inner is not None:
            for inside, where in _inside(field.inner, member, place):
                yield from visit(inside, field.inner.level, where)


def _inside(inner: Inner, value: Json, path: str) -> Iterator[tuple[Json, str]]:
    """The objects inside a member, with their paths."""
    if inner.shape is Shape.ONE:
        yield value, path
    elif inner.shape is Shape.MAP and isinstance(value, dict):
        yield from ((entry, f"{path}.{name}") for name, entry in value.items())
    elif isinstance(value, list):
        for place, entry in enumerate(value):
            if inner.shape is Shape.LIST:
                yield entry, f"{path}[{place}]"
            elif isinstance(entry, dict):
                yield from ((body, f"{path}[{place}].{name}") for name, body in entry.items())
