"""JSON as plain values: one spelling, strict equality, and looks that give None for another type."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spyre_mlir.dialects.superdsc.model.json_value import (
    Json,
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
    unspell,
)

LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": [1.0, True, None]}, '{"b":1,"a":[1.0,true,null]}'),
        ("é\ud800", '"\\u00e9\\ud800"'),
        ([], "[]"),
        (-3, "-3"),
    ],
)
def test_values_have_one_compact_spelling(value: Json, text: str) -> None:
    assert spell(value) == text
    assert unspell(text) == value


@settings(max_examples=20)
@given(st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=5))
def test_spellings_read_back(value: Json) -> None:
    assert json.dumps(unspell(spell(value))) == json.dumps(value)


def test_numbers_that_json_lacks_are_refused() -> None:
    with pytest.raises(ValueError, match="JSON"):
        spell(float("inf"))


def test_a_value_read_twice_is_no_shared_object() -> None:
    for text in ("[]", "{}"):
        assert unspell(text) is not unspell(text)


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        (1, 1, True),
        ([1], [1], True),
        (1, True, False),
        (1, 1.0, False),
        ([0], [False], False),
        ({"a": 1, "b": 2}, {"a": 1, "b": 2}, True),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, False),
        (1, 2, False),
        (None, None, True),
        (0.0, -0.0, False),
        (1.5, 1.5, True),
        ("x", "x", True),
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 2}]}, True),
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 2.0}]}, False),
        ([{"a": 1, "b": 2}], [{"b": 2, "a": 1}], False),
        ([1, 2], [1], False),
    ],
)
def test_equality_sees_types_and_order(left: Json, right: Json, equal: bool) -> None:
    assert same(left, right) is equal


SAMPLES: list[Json] = [1, True, 1.5, "x", [], ["x"], [1], [True], ["x", 1], {}, {"a": 1}, {"a": True}, {"a": "x"}, None]


@pytest.mark.parametrize(
    ("look", "found"),
    [
        (as_int, [1]),
        (as_text, ["x"]),
        (as_object, [{}, {"a": 1}, {"a": True}, {"a": "x"}]),
        (as_list, [[], ["x"], [1], [True], ["x", 1]]),
        (as_texts, [[], ["x"]]),
        (as_ints, [[], [1]]),
        (as_int_map, [{}, {"a": 1}]),
    ],
)
def test_looks_give_values_of_their_type(look: Callable[[Json], Json], found: list[Json]) -> None:
    seen = [read for sample in SAMPLES if (read := look(sample)) is not None]
    assert json.dumps(seen) == json.dumps(found)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("007", 7),
        ("9223372036854775807", 2**63 - 1),
        ("9" * 20, None),
        pytest.param("9" * 5000, None, id="5000 digits"),  # Python itself refuses to read so many
        ("-1", None),
        ("²", None),
        ("", None),
        (" 1", None),
    ],
)
def test_digits_are_numbers_of_64_bits(text: str, number: int | None) -> None:
    assert natural(text) == number
