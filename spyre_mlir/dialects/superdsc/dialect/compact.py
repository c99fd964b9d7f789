"""Short spellings of two regular values: start addresses as a sum over slices, constants as their bits.

`shorten` returns a short value only if `expand` gives back exactly the long one; irregular values stay long.
"""

from __future__ import annotations

from spyre_mlir.dialects.superdsc.model import derived_values, keys
from spyre_mlir.dialects.superdsc.model.fields import Level
from spyre_mlir.dialects.superdsc.model.file_context import FileContext
from spyre_mlir.dialects.superdsc.model.json_value import (
    Json,
    JsonObject,
    as_int,
    as_int_map,
    as_ints,
    as_list,
    as_object,
    natural,
    same,
)


def shorten(level: Level, key: str, value: Json, context: FileContext) -> Json:
    """Return the short form of a field, or None where it has none.

    A start is a list of numbers, or an object of base and bytes per slice of each dim; constant data is a number.
    """
    short: Json = None
    if level is Level.ALLOCATE and key == keys.START:
        short = _short_start(value, context)
    elif level is Level.CONSTANT and key == keys.DATA:
        short = _short_bits(value)
    if short is None or not same(expand(level, short, context), value):
        return None
    return short


def expand(level: Level, short: Json, context: FileContext) -> Json:
    """Return the value of a short form; None where the context does not define it."""
    if level is Level.CONSTANT:
        bits = as_int(short)
        return (
            None
            if bits is None or context.cores is None
            else derived_values.constant_folds(context.cores, bits, context.version)
        )
    listed = as_ints(short)
    addresses = _sums(as_object(short) or {}, context) if listed is None else listed
    return None if addresses is None else derived_values.start_folds([str(address) for address in addresses])


def _short_start(value: Json, context: FileContext) -> Json:
    addresses = _addresses(value)
    if not addresses:
        return None
    slices = context.slices()
    if len(slices) != len(addresses):
        return list(addresses)
    steps = {label: _step(label, slices, addresses) for label in slices[0]}
    short: JsonObject = {"base": addresses[0], "steps": {label: step for label, step in steps.items() if step}}
    return short if _sums(short, context) == addresses else list(addresses)


def _addresses(value: Json) -> list[int] | None:
    data = as_object((as_object(value) or {}).get(keys.DATA))
    if data is None:
        return None
    texts = [text for text in data.values() if isinstance(text, str)]
    numbers = [int(text) for text in texts if natural(text.removeprefix("-")) is not None]
    return numbers if len(numbers) == len(data) else None


def _step(label: str, slices: list[dict[str, int]], addresses: list[int]) -> int:
    """Address difference of the first two slices of a dim, all other slices being 0."""
    for row, address in zip(slices, addresses, strict=True):
        if row[label] == 1 and sum(row.values()) == 1:
            return address - addresses[0]
    return 0


def _sums(short: JsonObject, context: FileContext) -> list[int] | None:
    base, steps = as_int(short.get("base")), as_int_map(short.get("steps"))
    slices = context.slices()
    if base is None or steps is None or not slices or not set(steps) <= set(slices[0]):
        return None
    return [base + sum(step * row[label] for label, step in steps.items()) for row in slices]


def _short_bits(value: Json) -> Json:
    data = as_object((as_object(value) or {}).get(keys.DATA)) or {}
    words = as_list(data.get(derived_values.core_key(0)))
    if words is None or len(words) != 1:
        return None
    word = words[0]
    return natural(word) if isinstance(word, str) else as_int(word)
