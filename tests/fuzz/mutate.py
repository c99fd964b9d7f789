"""Damage to files: seeded changes of bytes, texts and JSON that a careless reader would stumble over."""

from __future__ import annotations

import json
import random
import re
from typing import Any

NUMBERS = (
    *("0", "-1", "1", "2", "3", "63", "64", "65", "128", "4096", "65535", "65536", "1000000000000"),
    *("9223372036854775807", "9223372036854775808", "18446744073709551616", "1000000000000000000000000000000"),
    *("1.5", "-0.0", "1e308", "0x7fc00000", "0xffffffffffffffffffff"),
)
VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 1, 2, 64, 65536, 1 << 40, 1 << 63, 10**30, 0.5, 1e300),
    *("", "x", "-1", "0", "1000000000000000000000000000000", "../x", "é", "\0", [], {}, [[]], [0], {"0": 0}),
)
TOKENS = (
    *('"', "(", ")", "[", "]", "{", "}", "<", ">", ",", ":", "=", "->", "-", "%0", "@f", "^bb0", "#a", "!t", "//"),
    *("tensor<?xf32>", "tensor<4xf32>", "tensor<1000000x1000000xf32>", "index", "i1", "f16", "dense<0>"),
    *("unit", "none", "affine_map<(d0) -> (d0)>", "module", "func.return", "...", "é", "\0", "\n", " ", "\\"),
)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_WORD = re.compile(r"[%@!#^]?[A-Za-z_][\w.$]*")


def of_bytes(data: bytes, rng: random.Random) -> bytes:
    """Bits turned, or pieces lost, doubled, overwritten or put in."""
    made = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randrange(len(made) + 1)
        count = rng.choice((1, 2, 8, 64))
        match rng.randrange(6):
            case 0 if at < len(made):
                made[at] ^= 1 << rng.randrange(8)
            case 1:
                del made[at : at + count]
            case 2:
                made[at:at] = made[at : at + count]
            case 3:
                made[at : at + count] = rng.choice((b"\0", b"\xff", b"\x7f")) * count
            case 4:
                made[at:at] = rng.randbytes(count)
            case _:
                del made[at:]
    return bytes(made)


def of_text(text: str, rng: random.Random) -> str:
    """One to three changes of numbers, words, marks, lines or pieces."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        text = rng.choice((_number, _number, _word, _word, _token, _lines, _piece, _cut))(text, rng)
    return text


def _replaced(pattern: re.Pattern[str], text: str, rng: random.Random, choices: tuple[str, ...]) -> str:
    found = list(pattern.finditer(text))
    if not found:
        return text
    one = rng.choice(found)
    return text[: one.start()] + rng.choice(choices or ("x",)) + text[one.end() :]


def _number(text: str, rng: random.Random) -> str:
    return _replaced(_NUMBER, text, rng, NUMBERS)


def _word(text: str, rng: random.Random) -> str:
    words = tuple(dict.fromkeys(_WORD.findall(text)))
    return _replaced(_WORD, text, rng, words)


def _token(text: str, rng: random.Random) -> str:
    at = rng.randrange(len(text) + 1)
    return text[:at] + rng.choice(TOKENS) + text[at + rng.choice((0, 0, 1)) :]


def _lines(text: str, rng: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    if len(lines) < 2:
        return text
    first, second = rng.sample(range(len(lines)), 2)
    match rng.randrange(3):
        case 0:
            lines[first], lines[second] = lines[second], lines[first]
        case 1:
            lines.insert(first, lines[second])
        case _:
            del lines[first]
    return "".join(lines)


def _piece(text: str, rng: random.Random) -> str:
    at, count = rng.randrange(len(text) + 1), rng.choice((1, 3, 10, 40))
    return rng.choice((text[:at] + text[at + count :], text[:at] + text[at : at + count] + text[at:]))


def _cut(text: str, rng: random.Random) -> str:
    return text[: rng.randrange(len(text) + 1)] if rng.random() < 0.2 else _token(text, rng)


def of_json(text: str, rng: random.Random) -> str:
    """Values replaced, lost or moved, at places drawn by field; sometimes damage to the text."""
    if rng.random() < 0.25:
        return of_text(text, rng)
    value = json.loads(text)
    for _ in range(rng.choice((1, 1, 2))):
        places = list(_places(value))
        if not places:
            break
        by_field: dict[str, list[tuple[Any, Any]]] = {}
        for holder, key in places:
            by_field.setdefault(str(key) if isinstance(holder, dict) else "[]", []).append((holder, key))
        holder, key = rng.choice(by_field[rng.choice(sorted(by_field))])
        match rng.randrange(4):
            case 0:
                del holder[key]
            case 1 if isinstance(holder[key], str) and holder[key].lstrip("-").isdigit():
                holder[key] = rng.choice(NUMBERS)
            case 2:
                other, name = rng.choice(places)
                holder[key] = json.loads(json.dumps(other[name] if name in other or isinstance(other, list) else None))
            case _:
                holder[key] = rng.choice(VALUES)
    return json.dumps(value)


def _places(value: Any) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting:
        holder = waiting.pop()
        keys = list(holder) if isinstance(holder, dict) else range(len(holder)) if isinstance(holder, list) else ()
        for key in keys:
            found.append((holder, key))
            waiting.append(holder[key])
    return found


def soup(rng: random.Random) -> str:
    """Tokens in no order."""
    return rng.choice(("", " ", "\n")).join(rng.choice(TOKENS + NUMBERS) for _ in range(rng.choice((3, 30, 3000))))
