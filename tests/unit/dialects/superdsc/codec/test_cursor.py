"""Typed looks into a JSON value, and the place and words of each that fails."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from spyre_mlir.dialects.superdsc.codec.cursor import Cursor, Misread
from spyre_mlir.dialects.superdsc.model.json_value import Json
from spyre_mlir.errors import ReadError, UnsupportedError

ROOT = Cursor({"a": [1, {"b": "x"}], "c": {}, "n": None}, "$")


def test_steps_lead_to_members_and_entries() -> None:
    assert ROOT.at("a").items()[1].at("b") == Cursor("x", "$.a[1].b")
    assert list(ROOT.members()) == [
        ("a", Cursor([1, {"b": "x"}], "$.a")),
        ("c", Cursor({}, "$.c")),
        ("n", Cursor(None, "$.n")),
    ]
    assert Cursor(["x"], "$.l").only() == Cursor("x", "$.l[0]")
    assert hash(Cursor("x", "$")) == hash(Cursor("x", "$"))


@pytest.mark.parametrize(("value", "inside"), [({"a": None}, True), ({"b": 1}, False), (["a"], False), ("a", False)])
def test_only_objects_have_members(value: Json, inside: bool) -> None:
    assert ("a" in Cursor(value, "$")) is inside


@pytest.mark.parametrize(
    ("value", "look", "read"),
    [
        (-3, Cursor.integer, -3),
        (7, Cursor.number, 7),
        ("-12", Cursor.number, -12),
        ("", Cursor.text, ""),
        (["a", "b"], Cursor.texts, ["a", "b"]),
        ([1, -2], Cursor.integers, [1, -2]),
        ({"a": 1}, Cursor.integer_map, {"a": 1}),
        ([], Cursor.items, []),
    ],
)
def test_values_of_the_right_type_are_read(value: Json, look: Callable[[Cursor], object], read: object) -> None:
    assert look(Cursor(value, "$")) == read


def at_a(place: Cursor) -> object:
    return place.at("a")


def all_members(place: Cursor) -> object:
    return list(place.members())


@pytest.mark.parametrize(
    ("value", "look", "expected", "got"),
    [
        ([1], at_a, "an object", "[1]"),
        ({"b": 1, "c": 2}, at_a, "a member 'a'", "members ['b', 'c']"),
        ([1], all_members, "an object", "[1]"),
        ({}, Cursor.items, "a list", "{}"),
        ([1, 2], Cursor.only, "a list of one entry", "2 entries"),
        ([], Cursor.only, "a list of one entry", "0 entries"),
        (True, Cursor.integer, "an integer", "true"),
        ("1", Cursor.integer, "an integer", '"1"'),
        ("1.5", Cursor.number, "an integer or a decimal string", '"1.5"'),
        (1, Cursor.text, "a string", "1"),
        (["a", 1], Cursor.texts, "a list of strings", '["a",1]'),
        ([1, "a"], Cursor.integers, "a list of integers", '[1,"a"]'),
        ({"a": True}, Cursor.integer_map, "an object of integers", '{"a":true}'),
    ],
)
def test_other_values_are_refused(value: Json, look: Callable[[Cursor], object], expected: str, got: str) -> None:
    with pytest.raises(Misread) as caught:
        look(Cursor(value, "$.p"))
    error = caught.value
    assert (error.path, error.expected, error.got) == ("$.p", expected, got)
    assert (error.where, error.message) == ("$.p", f"expected {expected}, got {got}")
    assert isinstance(error, ReadError)


def test_a_value_must_be_equal_in_type_too() -> None:
    Cursor([1, {"a": 2}], "$").must_be([1, {"a": 2}])
    for value in (1.0, True, 2):
        with pytest.raises(Misread, match="expected 1, got"):
            Cursor(value, "$").must_be(1)


def test_a_failure_shows_the_value_or_what_is_said_instead() -> None:
    with pytest.raises(Misread, match="expected more, got 1"):
        Cursor(1, "$").fail("more")
    with pytest.raises(Misread, match="expected more, got nothing"):
        Cursor(1, "$").fail("more", "nothing")


def test_long_values_are_cut_after_60_characters() -> None:
    """A string has two quotes."""
    assert Cursor("x" * 58, "$").shown == '"' + "x" * 58 + '"'
    assert Cursor("x" * 59, "$").shown == '"' + "x" * 59 + "…"


def test_what_is_valid_and_beyond_us_is_named_with_a_hint() -> None:
    with pytest.raises(UnsupportedError) as caught:
        Cursor(3, "$.p").unsupported("three of them", "write one")
    assert (caught.value.message, caught.value.where, caught.value.hint) == ("three of them: 3", "$.p", "write one")
