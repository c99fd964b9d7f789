"""JSON as it is written: one spelling for each value, short containers on one line."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

import pytest

from spyre_mlir.backend.json_file import dump_text, flat_text, keeps_its_lines, load_text, suggesting
from spyre_mlir.errors import ReadError

LINE = 116


def plain(value: Any, indent: int = 0, used: int = 0) -> str:
    """The same by its definition: on one line whatever fits, else an item a line."""
    flat = json.dumps(value)
    if not isinstance(value, dict | list) or not value or indent + used + len(flat) <= LINE:
        return flat
    heads = [json.dumps(key) + ": " for key in value] if isinstance(value, dict) else [""] * len(value)
    items = value.values() if isinstance(value, dict) else value
    inner = [" " * (indent + 1) + h + plain(i, indent + 1, len(h)) for h, i in zip(heads, items, strict=True)]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return "\n".join([opening, ",\n".join(inner), " " * indent + closing])


SCALARS = (0, 1, -12345, True, False, None, 0.0, -0.0, 1.0, 1.5e-9, "", "a name", 'é\n"', "x" * 30)


def drawn(rng: random.Random, depth: int, scalars: Sequence[Any] = SCALARS) -> Any:
    if depth and rng.random() < 0.7:
        items = [drawn(rng, depth - 1, scalars) for _ in range(rng.randrange(8))]
        return items if rng.random() < 0.5 else {f"{'k' * rng.randrange(9)}{n}": item for n, item in enumerate(items)}
    return rng.choice(scalars)


@pytest.mark.parametrize("seed", range(60))
def test_lines_are_as_full_as_they_may_be(seed: int) -> None:
    value = drawn(random.Random(seed), 5)
    assert dump_text(value) == plain(value) + "\n"


@pytest.mark.parametrize("more", range(-3, 4))
def test_the_longest_line(more: int) -> None:
    for value in (["x" * (LINE - 4 + more)], {"a": "x" * (LINE - 9 + more)}, [1] * ((LINE + more) // 3)):
        assert dump_text(value) == plain(value) + "\n"


def test_numbers_that_python_calls_equal() -> None:
    assert dump_text([1, True, 1.0, 0, False, 0.0, -0.0]) == "[1, true, 1.0, 0, false, 0.0, -0.0]\n"


def test_lines_that_break_the_same_whatever_strings_are_in_them() -> None:
    """Told from one text, as against the texts for all lengths."""
    longest, found = 20, set[bool]()
    for seed in range(300):
        rng = random.Random(seed)
        text = json.dumps({"~": drawn(rng, 4, (*SCALARS, *["~"] * rng.randrange(6)))})
        short, *longer = (dump_text(json.loads(text.replace("~", "~" * n))) for n in range(1, longest + 1))
        same = all(other.replace("~" * n, "~") == short for n, other in enumerate(longer, 2))
        assert keeps_its_lines(short, "~", longest) == same, seed
        found.add(same)
    assert found == {True, False}


def test_flat_text_is_one_line_of_the_same_value() -> None:
    value: Any = {"b": [1, 2.5, None, True], "a": {"long": "x" * 200, "line": "\n"}}
    assert json.loads(flat_text(value)) == value
    assert "\n" not in flat_text(value)


@pytest.mark.parametrize(("hint", "wanted"), [(None, "name another"), ("its own", "its own")])
def test_an_error_without_a_hint_gets_one(hint: str | None, wanted: str) -> None:
    with pytest.raises(ReadError) as caught, suggesting("name another"):
        raise ReadError("no", hint=hint)
    assert caught.value.hint == wanted
    with pytest.raises(ReadError, match=r"expected JSON .*, got 'the end of the file'"), suggesting("name another"):
        load_text("", "a.json")
