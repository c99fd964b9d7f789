"""A thousand seeded corruptions of the example files, and what becomes of each.

Every seed fixes a file, a kind of damage and a place. Places are drawn by field, not by how often a field occurs: the
table of start addresses counts as much as the mask constant. Run as a script, with the number of seeds, to see the
table:

    python -m tests.corruptions 1000
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
import random
import re
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spyre_mlir.backend.check import Severity, check_path
from spyre_mlir.backend.read import read_json
from spyre_mlir.cli.translate import main
from spyre_mlir.dialects.superdsc.codec.describe import describe
from spyre_mlir.errors import SpyreError
from spyre_mlir.universe import make_context

FILES = sorted(p for p in (Path(__file__).parent / "data").glob("superdsc_*/*.json") if "segment_size" not in p.name)
REJECTED, WARNED, DIFFERENT, SAME = "rejected", "warned", "valid but a different program", "same output"
SECONDS = 20

Place = tuple[Any, ...]


@dataclass(frozen=True)
class Corruption:
    """A damaged file.

    Args:
        seed: what it was drawn from.
        file: the file before.
        kind: the kind of damage.
        field: the damaged place, numbers and cores left out.
        data: the damaged bytes.
    """

    seed: int
    file: Path
    kind: str
    field: str
    data: bytes


def places(value: Any, path: Place = ()) -> Iterator[Place]:
    """Every place below a value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in items:
        yield (*path, key)
        yield from places(member, (*path, key))


def field_of(path: Place) -> str:
    """A place without root, op name, numbers and cores."""
    words = [str(key) for key in path[1:] if not isinstance(key, int)]
    return ".".join("*" if re.fullmatch(r"\[?[\d, ]+\]?", word) else word for word in words)


def at(value: Any, path: Place) -> Any:
    """The value at a place."""
    for key in path:
        value = value[key]
    return value


def _draw(value: Any, rng: random.Random, fits: Callable[[Place, Any], bool]) -> Place:
    by_field: dict[str, list[Place]] = {}
    for path in places(value):
        if len(path) > 1 and fits(path, at(value, path)):
            by_field.setdefault(field_of(path), []).append(path)
    return rng.choice(by_field[rng.choice(sorted(by_field))])


def _number(value: Any, rng: random.Random) -> tuple[Any, Place]:
    path = _draw(value, rng, lambda _, v: isinstance(v, (int, float)) and not isinstance(v, bool))
    old = at(value, path)
    new = rng.choice([old + 1, old - 1, old * 2 + 1, -old - 2, old + 64, 0 if old else 7, rng.randrange(1 << 20)])
    at(value, path[:-1])[path[-1]] = new
    return value, path


def _text(value: Any, rng: random.Random) -> tuple[Any, Place]:
    path = _draw(value, rng, lambda _, v: isinstance(v, str))
    old = at(value, path)
    if old.lstrip("-").isdigit():
        new = str(rng.choice([int(old) + 128, int(old) * 2 + 128, int(old) + 1, -int(old) - 1, rng.randrange(1 << 34)]))
    else:
        spot = rng.randrange(len(old) + 1)
        new = rng.choice([old[:spot] + rng.choice("x_0é\0") + old[spot:], old[:spot] + old[spot + 1 :], old.upper()])
        new = new if new != old else old + "!"
    at(value, path[:-1])[path[-1]] = new
    return value, path


def _rename_key(value: Any, rng: random.Random) -> tuple[Any, Place]:
    path = _draw(value, rng, lambda p, _: isinstance(p[-1], str))
    owner, key = at(value, path[:-1]), path[-1]
    new = rng.choice([key + "_", key.rstrip("_") + "x", key[1:], key.swapcase()])
    items = [(new if name == key else name, member) for name, member in owner.items()]
    owner.clear()
    owner.update(items)
    return value, path


def _drop(value: Any, rng: random.Random) -> tuple[Any, Place]:
    path = _draw(value, rng, lambda _, __: True)
    del at(value, path[:-1])[path[-1]]
    return value, path


def _add_key(value: Any, rng: random.Random) -> tuple[Any, Place]:
    path = _draw(value, rng, lambda _, v: isinstance(v, dict))
    at(value, path)[f"extra{rng.randrange(10)}_"] = rng.choice([0, "x", [], {}, None])
    return value, path


def _change_type(value: Any, rng: random.Random) -> tuple[Any, Place]:
    path = _draw(value, rng, lambda _, __: True)
    old = at(value, path)
    choices: list[Any] = [None, True, [], {}, "text", 1.5, [[old]], {"a": old}, str(old)]
    at(value, path[:-1])[path[-1]] = rng.choice([new for new in choices if new != old])
    return value, path


def _rearrange(value: Any, rng: random.Random) -> tuple[Any, Place]:
    path = _draw(value, rng, lambda _, v: isinstance(v, list) and len(v) > 1)
    items = at(value, path)
    first, second = rng.sample(range(len(items)), 2)
    match rng.randrange(3):
        case 0:
            items[first], items[second] = items[second], items[first]
        case 1:
            items.insert(first, copy.deepcopy(items[second]))
        case _:
            items.pop(first)
    return value, path


def _huge(value: Any, rng: random.Random) -> tuple[Any, Place]:
    path = _draw(value, rng, lambda _, v: isinstance(v, (int, str)) and not isinstance(v, bool))
    new: Any = rng.choice([10**30, -(10**30), 1 << 62, 10**4000, "9" * 4000, "9" * 5000, 1e300, 0.1])
    at(value, path[:-1])[path[-1]] = new
    return value, path


VALUES: dict[str, Callable[[Any, random.Random], tuple[Any, Place]]] = {
    "number": _number,
    "text": _text,
    "key renamed": _rename_key,
    "member dropped": _drop,
    "key added": _add_key,
    "type": _change_type,
    "list": _rearrange,
    "huge number": _huge,
}


def _duplicate(text: str, rng: random.Random) -> bytes:
    keys = list(re.finditer(r'"[A-Za-z_]+": ', text))
    key = rng.choice(keys)
    return (text[: key.start()] + key.group() + "0, " + text[key.start() :]).encode()


def _nest(text: str, rng: random.Random) -> bytes:
    depth = rng.choice([65, 1000, 100_000])
    spot = rng.choice([m.end() for m in re.finditer(r'": ', text)])
    opening, closing = rng.choice([("[", "]"), ('{"a": ', "}")])
    return (text[:spot] + opening * depth + "0" + closing * depth + "," + text[spot:]).encode()


def _numeral(text: str, rng: random.Random) -> bytes:
    numbers = list(re.finditer(r"(?<=: )-?\d+(?=[,}\n])", text))
    spot = rng.choice(numbers)
    word = rng.choice(["1e999", "-1e999", "NaN", "Infinity", "9" * 100_000, "0x10", "01", "1e5", "-0", "1.0"])
    return (text[: spot.start()] + word + text[spot.end() :]).encode()


def _encode(text: str, rng: random.Random) -> bytes:
    spot = rng.randrange(len(text))
    damaged = text[:spot] + rng.choice(["\xe9", "\x00", "\u2028", "\\ud800"]) + text[spot:]
    return rng.choice(
        [
            text.encode("utf-16"),
            text.encode("utf-32"),
            text.encode("utf-8-sig"),
            damaged.encode("latin-1", "replace"),
            damaged.encode("utf-8"),
            text.encode()[:spot] + bytes([rng.randrange(128, 256)]) + text.encode()[spot:],
        ]
    )


TEXTS: dict[str, Callable[[str, random.Random], bytes]] = {
    "truncation": lambda text, rng: text[: rng.randrange(len(text))].encode(),
    "duplicate key": _duplicate,
    "deep nesting": _nest,
    "odd numeral": _numeral,
    "encoding": _encode,
}


def corruption(seed: int) -> Corruption:
    """The corruption of a seed."""
    rng = random.Random(seed)
    path = rng.choice(FILES)
    kind = rng.choice([*VALUES, *TEXTS])
    text = path.read_text()
    if kind in TEXTS:
        return Corruption(seed, path, kind, f"({kind})", TEXTS[kind](text, rng))
    value, place = VALUES[kind](json.loads(text), rng)
    sys.set_int_max_str_digits(0)
    data = json.dumps(value, indent=1).encode()
    sys.set_int_max_str_digits(4300)
    return Corruption(seed, path, kind, field_of(place), data)


def _program(path: Path) -> Any:
    """What a file makes the machine do; the JSON value where the machine runs nothing."""
    try:
        view = describe(read_json(path))
    except SpyreError:
        return json.loads(path.read_text())
    return view, [dict(row) for row in view.slices]


def outcome(one: Corruption, directory: Path) -> str:
    """The class of a corruption.

    Raises:
        AssertionError: a tool ended in another way than it may.
    """
    path = directory / "f.json"
    path.write_bytes(one.data)
    for flag in ("--check", "--superdsc-to-mlir"):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main([flag, str(path)])
        assert code in (0, 1, 2), (one.seed, flag, code, err.getvalue())
        assert "Traceback" not in err.getvalue() and "bug of ours" not in err.getvalue(), (one.seed, err.getvalue())
    known = Counter((f.rule, f.path) for f in check_path(one.file, make_context()))
    found = [f for f in check_path(path, make_context()) if not known[f.rule, f.path]]
    if any(finding.severity is Severity.ERROR for finding in found):
        return REJECTED
    if found:
        return WARNED
    return SAME if _program(path) == _program(one.file) else DIFFERENT


@dataclass
class Table:
    """What became of many corruptions.

    Args:
        classes: how many of each class.
        kinds: how many of each class, by kind of damage.
        different: seeds of corruptions that leave a valid but different program, by field.
    """

    classes: Counter[str]
    kinds: Counter[tuple[str, str]]
    different: dict[str, list[int]]


def measure(seeds: range) -> Table:
    """Class every corruption; a hang ends the process."""
    table = Table(Counter(), Counter(), {})
    with tempfile.TemporaryDirectory() as directory:
        for seed in seeds:
            one = corruption(seed)
            signal.setitimer(signal.ITIMER_PROF, SECONDS)  # of processor time; its signal ends the process
            result = outcome(one, Path(directory))
            signal.setitimer(signal.ITIMER_PROF, 0)
            table.classes[result] += 1
            table.kinds[one.kind, result] += 1
            if result == DIFFERENT:
                table.different.setdefault(one.field, []).append(seed)
    return table


def _peak_megabytes() -> int:
    """Most memory this program held; getrusage would count what the process that started it held before."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(re.search(r"VmHWM:\s*(\d+) kB", status)[1]) // 1024  # pyright: ignore[reportOptionalSubscript]


def report(table: Table) -> dict[str, Any]:
    """The table as JSON, with the memory that the process took at most, in MiB."""
    return {
        "classes": dict(table.classes),
        "kinds": {
            kind: {c: table.kinds[kind, c] for c in (REJECTED, WARNED, DIFFERENT, SAME)} for kind in [*VALUES, *TEXTS]
        },
        "different": dict(sorted(table.different.items())),
        "megabytes": _peak_megabytes(),
    }


if __name__ == "__main__":
    print(json.dumps(report(measure(range(int(sys.argv[1])))), indent=1))
