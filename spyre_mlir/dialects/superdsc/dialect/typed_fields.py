"""The deciding fields of each object as typed properties, and the rest of the object as JSON.

`split` types a field only if `join` gives back exactly its value: an odd value, or one that MLIR's attributes cannot
hold, stays in the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, BytesAttr, DenseArrayBase, IntegerAttr, StringAttr, UnitAttr, i64
from xdsl.ir import Attribute

from spyre_mlir.dialects.superdsc.dialect.attributes import JsonAttr
from spyre_mlir.dialects.superdsc.dialect.layouts import DimsAttr, LayoutClassAttr, ScalarAttr, plain_class
from spyre_mlir.dialects.superdsc.model import derived_values, keys
from spyre_mlir.dialects.superdsc.model.fields import Level, in_file_order
from spyre_mlir.dialects.superdsc.model.file_context import plain_sizes
from spyre_mlir.dialects.superdsc.model.json_value import (
    Json,
    JsonObject,
    as_int,
    as_int_map,
    as_ints,
    as_list,
    as_object,
    as_text,
    as_texts,
    natural,
    same,
    spell,
)

REST = "rest"
KEY_ORDER = "key_order"

_LARGEST = 1 << 63  # of the integers that an i64 holds, less one


@dataclass(frozen=True)
class Typed:
    """A field that is a property of its own.

    Args:
        key: its key in the file.
        name: of the property.
        read: the attribute of a value; None where the value is odd.
        give: the value of an attribute.
    """

    key: str
    name: str
    read: Callable[[Json], Attribute | None]
    give: Callable[[Attribute], Json]


def plain_text(text: str | None) -> bool:
    """Return whether a string is spelled in IR text by itself: printable ASCII that needs no escapes."""
    return text is not None and text.isascii() and text.isprintable() and '"' not in text and "\\" not in text


@lru_cache(maxsize=1 << 12)
def _string(text: str) -> StringAttr | None:
    return StringAttr(text) if plain_text(text) else None


def _read_text(value: Json) -> Attribute | None:
    return _string(value) if isinstance(value, str) else None


def _give_text(attribute: Attribute) -> Json:
    return attribute.data if isinstance(attribute, StringAttr) else None


def _fits(number: int) -> bool:
    return -_LARGEST <= number < _LARGEST


def _read_int(value: Json) -> Attribute | None:
    number = as_int(value)
    return _integer(number) if number is not None and _fits(number) else None


@lru_cache(maxsize=1 << 8)
def _integer(number: int) -> IntegerAttr:
    return IntegerAttr(number, i64)


def _give_int(attribute: Attribute) -> Json:
    return attribute.value.data if isinstance(attribute, IntegerAttr) else None


def _read_texts(value: Json) -> Attribute | None:
    texts = as_texts(value)
    return _strings(tuple(texts)) if texts is not None else None


@lru_cache(maxsize=1 << 10)
def _strings(texts: tuple[str, ...]) -> Attribute | None:
    return ArrayAttr([StringAttr(text) for text in texts]) if all(map(plain_text, texts)) else None


def _give_texts(attribute: Attribute) -> Json:
    items = _items(attribute)
    return None if items is None else [_give_text(item) for item in items]


def _items(attribute: Attribute) -> Iterable[Attribute] | None:
    return cast("ArrayAttr[Attribute]", attribute) if isinstance(attribute, ArrayAttr) else None


def _numbers(numbers: list[int] | None) -> Attribute | None:
    if numbers is None or (numbers and not (_fits(min(numbers)) and _fits(max(numbers)))):
        return None
    return DenseArrayBase(i64, BytesAttr(i64.pack(numbers)))  # checked already; `from_list` checks each number again


def _read_ints(value: Json) -> Attribute | None:
    return _numbers(as_ints(value))


def _give_ints(attribute: Attribute) -> Json:
    return list(_array(attribute))


def _array(attribute: Attribute) -> tuple[int, ...]:
    return attribute.get_values() if isinstance(attribute, DenseArrayBase) else ()


def _read_flag(value: Json) -> Attribute | None:
    return UnitAttr() if same(value, 1) else None


def _read_dims(value: Json) -> Attribute | None:
    numbers = as_int_map(value)
    return None if numbers is None else DimsAttr.of(numbers)


def _give_dims(attribute: Attribute) -> Json:
    return dict(attribute.data) if isinstance(attribute, DimsAttr) else None


def _read_sizes(value: Json) -> Attribute | None:
    sizes = plain_sizes(value)
    return None if sizes is None else DimsAttr.of(sizes)


def _give_sizes(attribute: Attribute) -> Json:
    return derived_values.named_sizes(attribute.numbers) if isinstance(attribute, DimsAttr) else None


def _read_classes(value: Json) -> Attribute | None:
    classes = as_object(value)
    if classes is None or not all(plain_class(entry) for entry in classes.values()):
        return None
    return ArrayAttr([LayoutClassAttr.of(label, entry) for label, entry in classes.items()])


def _give_classes(attribute: Attribute) -> Json:
    items = _items(attribute)
    return None if items is None else {one.label.data: one.entry for one in items if isinstance(one, LayoutClassAttr)}


def _read_start(value: Json) -> Attribute | None:
    """One decimal string per core, in the one form of a start's fold manager."""
    head = dict(as_object(value) or {})
    data = as_object(head.pop(keys.DATA, None))
    if not data or spell(head) != _start_head(len(data)) or next(reversed(as_object(value) or {})) != keys.DATA:
        return None
    texts = as_texts(list(data.values()))
    return addresses(texts) if tuple(data) == derived_values.core_keys(len(data)) else None


def addresses(texts: Sequence[str] | None) -> Attribute | None:
    """Return the property that holds start addresses; None for texts other than decimal numbers."""
    return _numbers(_decimals(texts))


@lru_cache(maxsize=1 << 6)
def _start_head(cores: int) -> str:
    return spell(derived_values.start_head(cores))


def _decimals(texts: Sequence[str] | None) -> list[int] | None:
    """The numbers of decimal strings that are spelled as numbers are."""
    if texts is None:
        return None
    try:
        numbers = list(map(int, texts))
    except ValueError:
        return None
    return numbers if list(map(str, numbers)) == list(texts) else None


def _give_start(attribute: Attribute) -> Json:
    return derived_values.start_folds([str(address) for address in _array(attribute)])


def _read_format(value: Json) -> Attribute | None:
    kind = as_text((as_object(value) or {}).get(keys.FORMAT))
    return _string(kind) if kind is not None and same(value, derived_values.operation_attributes(kind)) else None


def _give_format(attribute: Attribute) -> Json:
    return derived_values.operation_attributes(attribute.data) if isinstance(attribute, StringAttr) else None


def _read_scalar(value: Json) -> Attribute | None:
    fields = as_object(value) or {}
    words = as_list((as_object(fields.get(keys.DATA)) or {}).get(derived_values.core_key(0)))
    props = as_list(fields.get(keys.PROPS))
    cores = as_int((as_object(props[0]) or {}).get(keys.FACTOR)) if props else None
    if not words or cores is None or cores < 0:
        return None
    word = words[0]
    number = word if isinstance(word, str) else as_int(word)
    if number is None or (natural(number) is None if isinstance(number, str) else number < 0):
        return None
    return ScalarAttr((number, cores)) if same(value, derived_values.word_folds(cores, number)) else None


def _give_scalar(attribute: Attribute) -> Json:
    return derived_values.word_folds(attribute.cores, attribute.word) if isinstance(attribute, ScalarAttr) else None


def _text(key: str, name: str) -> Typed:
    return Typed(key, name, _read_text, _give_text)


_INDEX = Typed(keys.INDEX, "index", _read_int, _give_int)

_TABLES: dict[Level, tuple[Typed, ...]] = {
    Level.SDSC: (Typed(keys.SPLITS, "splits", _read_dims, _give_dims),),
    Level.DSC: (
        Typed(keys.SIZES, "sizes", _read_sizes, _give_sizes),
        Typed(keys.CLASSES, "classes", _read_classes, _give_classes),
    ),
    Level.ALLOCATE: (
        _INDEX,
        _text(keys.COMPONENT, "component"),
        Typed(keys.SYMBOLIC, "symbolic", _read_flag, lambda _: 1),
        Typed(keys.ORDER, "order", _read_texts, _give_texts),
        Typed(keys.START, "start", _read_start, _give_start),
    ),
    Level.LABELED_DS: (
        _INDEX,
        _text(keys.CLASS, "class"),
        Typed(keys.SCALE, "scale", _read_ints, _give_ints),
        _text(keys.FORMAT, "format"),
    ),
    Level.CONSTANT: (
        _text(keys.FORMAT, "format"),
        _text(keys.NAME, "name"),
        Typed(keys.DATA, "data", _read_scalar, _give_scalar),
    ),
    Level.COMPUTE: (
        _text(keys.UNIT, "unit"),
        _text(keys.FUNCTION, "function"),
        Typed(keys.ATTRIBUTES, "format", _read_format, _give_format),
    ),
}

TYPED: dict[Level, dict[str, Typed]] = {
    level: {typed.key: typed for typed in table} for level, table in _TABLES.items()
}
"""The typed fields of each object, by their keys."""


def split(level: Level, fields: JsonObject, linked: Collection[str] = ()) -> dict[str, Attribute]:
    """Return the properties that hold an object; the `linked` fields are held by operands."""
    table, properties = TYPED[level], dict[str, Attribute]()
    rest: JsonObject = {}
    for key, value in fields.items():
        typed = table.get(key)
        attribute = None if typed is None else typed.read(value)
        if typed is not None and attribute is not None:
            properties[typed.name] = attribute
        elif key not in linked:
            rest[key] = value
    if rest:
        properties[REST] = JsonAttr.of(rest)
    given = list(fields)
    if in_file_order(level, given) != given:
        properties[KEY_ORDER] = JsonAttr.of([*given])
    return properties


def join(level: Level, properties: Mapping[str, Attribute], linked: JsonObject) -> JsonObject:
    """Return the object that properties and links hold, in the order of its file."""
    fields = rest_of(properties)
    for typed in TYPED[level].values():
        attribute = properties.get(typed.name)
        if attribute is not None:
            fields[typed.key] = typed.give(attribute)
    fields |= linked
    given = properties.get(KEY_ORDER)
    order = as_texts(given.value) if isinstance(given, JsonAttr) else None
    if order is None or len(order) != len(fields) or fields.keys() != set(order):
        order = in_file_order(level, fields)
    return {key: fields[key] for key in order}


def rest_of(properties: Mapping[str, Attribute]) -> JsonObject:
    """Return the fields that no property of their own and no link holds."""
    rest = properties.get(REST)
    return rest.object if isinstance(rest, JsonAttr) else {}


def field(level: Level, properties: Mapping[str, Attribute], key: str) -> Json:
    """Return one field that is no link; None where the object lacks it."""
    typed = TYPED[level].get(key)
    attribute = None if typed is None else properties.get(typed.name)
    if typed is not None and attribute is not None:
        return typed.give(attribute)
    return rest_of(properties).get(key)


def doubled(
    level: Level, properties: Mapping[str, Attribute], linked: Collection[str], rest: Collection[str]
) -> str | None:
    """Return the first key that stands in the rest although a property or a link holds it."""
    held = {typed.key for typed in TYPED[level].values() if typed.name in properties} | set(linked)
    return next((key for key in rest if key in held), None)
