"""JSON text to values and back: duplicate keys are rejected by name, errors carry file and position.

The standard library's decoder is used because it is the one that lets duplicate keys be seen and that names line and
column; the values are plain Python ones.

Decision: docs/decisions/0018-json-by-the-standard-library.md
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator
from contextlib import contextmanager
from functools import lru_cache
from math import isfinite
from pathlib import Path
from typing import NoReturn, cast

from spyre_mlir.dialects.superdsc.model.json_value import Json, JsonObject
from spyre_mlir.errors import ReadError

_LINE = 116
_FLAT = json.JSONEncoder(allow_nan=False)
_DEPTH = 64  # real files reach 13; deeper text would exhaust the stack of a recursive reader


def load_text(text: str, filename: str) -> Json:
    """Value of a JSON text.

    Raises:
        ReadError: the text is no JSON, or an object has a key twice.
    """

    def pairs(items: list[tuple[str, Json]]) -> JsonObject:
        result = dict(items)
        if len(result) != len(items):
            keys = [key for key, _ in items]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise ReadError(f"expected every key once, got {twice!r} twice in one object", where=filename)
        return result

    def constant(name: str) -> NoReturn:
        raise ReadError(f"expected a JSON number, got {name}", where=filename)

    def fraction(digits: str) -> float:
        number = float(digits)
        return number if isfinite(number) else constant(digits)

    try:
        value = cast("Json", json.loads(text, object_pairs_hook=pairs, parse_constant=constant, parse_float=fraction))
    except json.JSONDecodeError as error:
        place = f"{filename}:{error.lineno}:{error.colno}"
        got = text[error.pos : error.pos + 20] or "the end of the file"
        raise ReadError(f"expected JSON ({error.msg.lower()}), got {got!r}", where=place) from error
    except RecursionError as error:
        raise ReadError(f"expected JSON nested at most {_DEPTH} deep, got much deeper", where=filename) from error
    except ValueError as error:  # an integer of thousands of digits
        raise ReadError(f"expected a number of sensible length: {error}", where=filename) from error
    if _deeper_than(_DEPTH, value):
        raise ReadError(f"expected JSON nested at most {_DEPTH} deep, got deeper", where=filename)
    return value


def _deeper_than(limit: int, value: Json) -> bool:
    level: list[Json] = [value]
    for _ in range(limit):
        children = [
            item.values() if isinstance(item, dict) else item for item in level if isinstance(item, (dict, list))
        ]
        level = [child for items in children for child in items]
    return bool(level)


def read_text(path: Path) -> str:
    """Text of a file.

    Raises:
        ReadError: the file is missing, unreadable, or not UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ReadError(
            f"expected UTF-8 text, got byte {error.object[error.start]:#x}", where=f"{path}, byte {error.start}"
        ) from error
    except OSError as error:
        raise ReadError(f"cannot read the file: {error.strerror}", where=str(path)) from error


@contextmanager
def record_in(path: Path, kind: str, version: int, hint: str) -> Generator[JsonObject]:
    """Read a file of ours, and turn what the block finds missing or misspelt in it into an error that names the file.

    Args:
        path: the file.
        kind: of file, which it says under `format`.
        version: of the kind.
        hint: what to try with any other file.

    Raises:
        ReadError: it cannot be read, is of another kind or version, or has not the fields that the block reads.
    """
    value = load_text(read_text(path), str(path))
    if not isinstance(value, dict) or value.get("format") != kind:
        raise ReadError(f"this is no file of a {kind}", where=str(path), hint=hint)
    if (got := value.get("version")) != version:
        raise ReadError(f"expected a {kind} of version {version}, got {got}", where=str(path), hint=hint)
    try:
        yield value
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ReadError(f"the file lacks or misspells {error}", where=str(path), hint=hint) from error


@contextmanager
def suggesting(hint: str) -> Generator[None]:
    """Give errors about a file something to try, if they have nothing."""
    try:
        yield
    except ReadError as error:
        error.hint = error.hint or hint
        raise


def dump_text(value: Json) -> str:
    """Return deterministic, readable JSON: key order as given, short containers on one line."""
    return _block(value, 0, 0) + "\n"


def keeps_its_lines(text: str, blank: str, longest: int) -> bool:
    """Return whether a text of `dump_text` breaks its lines where it does, however long some of its strings are.

    Args:
        text: with a placeholder for each of these strings; those of a container on lines of its own are free.
        blank: the placeholder, of one character that is nowhere else in the text.
        longest: characters that a string may have.
    """
    alone = re.compile(f' *(?:"[^"]*": )?"{blank}",?| *"{blank}": [{{[]')
    lines = (line for line in text.splitlines() if blank in line and not alone.fullmatch(line))
    return all(len(line.removesuffix(",")) + (longest - 1) * line.count(blank) <= _LINE for line in lines)


def flat_text(value: Json) -> str:
    """Return JSON on one line, for programs to read."""
    return _FLAT.encode(value)


def _block(value: Json, indent: int, used: int) -> str:
    if not isinstance(value, (dict, list)):
        return _known_scalar(value) if isinstance(value, (str, int)) else _FLAT.encode(value)
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    if not value:
        return opening + closing
    if isinstance(value, dict):
        heads = [_known_scalar(key) + ": " for key in value]
        parts = [head + _block(item, indent + 1, len(head)) for head, item in zip(heads, value.values(), strict=True)]
    else:
        parts = [_block(item, indent + 1, 0) for item in value]
    # What fits on one line has items that fit on lines of their own, so each part is written once.
    if sum(map(len, parts)) + 2 * len(parts) <= _LINE - indent - used and not any("\n" in part for part in parts):
        return f"{opening}{', '.join(parts)}{closing}"
    inner = " " * (indent + 1)
    body = f",\n{inner}".join(parts)
    return f"{opening}\n{inner}{body}\n{' ' * indent}{closing}"


@lru_cache(maxsize=1 << 14, typed=True)  # keys, names and sizes come again in every file
def _known_scalar(value: str | int) -> str:
    return _FLAT.encode(value)
