"""JSON as plain Python values, its one compact spelling, and typed access to them.

Objects keep their key order, and equality of spellings is strict: `1`, `1.0` and `true` differ, and so do two
orders of keys.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TypeAlias, cast

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
JsonObject: TypeAlias = "dict[str, Json]"

_DIGITS = 19  # of the largest signed 64-bit number
_COMPACT = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"), allow_nan=False)


def spell(value: Json) -> str:
    """Return the compact ASCII spelling; equal spellings mean equal values, key order included."""
    return _COMPACT.encode(value)


def unspell(text: str) -> Json:
    """Return the value of a spelling."""
    return cast("Json", json.loads(text)) if text[:1] in "[{" else _scalar(text)


@lru_cache(maxsize=1 << 14)  # sizes, names and flags come again in every file
def _scalar(text: str) -> Json:
    return cast("Json", json.loads(text))


def same(left: Json, right: Json) -> bool:
    """Return whether two values are equal, in types and key order too."""
    # What Python calls unequal is so; what it calls equal may be 1 and true, 0.0 and -0.0, or keys in another order.
    if left is right:
        return True
    if left != right:
        return False
    if isinstance(left, dict) and isinstance(right, dict):
        pairs = zip(left.items(), right.items(), strict=True)
        return all(one == other and same(a, b) for (one, a), (other, b) in pairs)
    if isinstance(left, list) and isinstance(right, list):
        return all(map(same, left, right))
    return isinstance(left, str) or (type(left) is type(right) and repr(left) == repr(right))


def natural(text: str) -> int | None:
    """Return the number that ASCII digits spell; None for other text, and for more digits than 64 bits can need."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS else None


def as_int(value: Json) -> int | None:
    """Return the integer, or None; a boolean is not an integer."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def as_text(value: Json) -> str | None:
    """Return the string, or None."""
    return value if isinstance(value, str) else None


def as_object(value: Json) -> JsonObject | None:
    """Return the object, or None."""
    return value if isinstance(value, dict) else None


def as_list(value: Json) -> list[Json] | None:
    """Return the list, or None."""
    return value if isinstance(value, list) else None


def as_texts(value: Json) -> list[str] | None:
    """Return the list of strings, or None."""
    if not isinstance(value, list):
        return None
    texts = [item for item in value if isinstance(item, str)]
    return texts if len(texts) == len(value) else None


def as_ints(value: Json) -> list[int] | None:
    """Return the list of integers, or None."""
    if not isinstance(value, list):
        return None
    numbers = [item for item in value if isinstance(item, int) and not isinstance(item, bool)]
    return numbers if len(numbers) == len(value) else None


def as_int_map(value: Json) -> dict[str, int] | None:
    """Return the object whose values are all integers, or None."""
    if not isinstance(value, dict):
        return None
    numbers = {key: item for key, item in value.items() if isinstance(item, int) and not isinstance(item, bool)}
    return numbers if len(numbers) == len(value) else None
