"""JSON inside the text: values, words and strings written and read back."""

from __future__ import annotations

import pytest
from xdsl.utils.exceptions import ParseError

from spyre_mlir.dialects.superdsc.dialect.attributes import (
    JsonAttr,
    parse_json,
    parse_optional_text,
    parse_word,
    parse_word_list,
    parse_word_map,
    print_json,
    print_text,
    print_word,
    print_word_list,
    print_word_map,
)
from spyre_mlir.dialects.superdsc.model.json_value import Json
from tests.unit.dialects.superdsc.dialect.texts import reader, written

VALUES: list[tuple[Json, str]] = [
    ({"b": 1, "a": [True, None]}, '{"b": 1, "a": [true, null]}'),
    ({}, "{}"),
    ([], "[]"),
    (False, "false"),
    (-3, "-3"),
    (1.5, "1.5"),
    (1e300, "1.0e+300"),
    (-2.5e-7, "-2.5e-07"),
    (1e-7, "1.0e-07"),
    ("mb", '"mb"'),
    ("é", '"\\C3\\A9"'),
]


@pytest.mark.parametrize(("value", "text"), VALUES, ids=str)
def test_values_are_written_and_read(value: Json, text: str) -> None:
    assert written(lambda printer: print_json(printer, value)) == text
    read = parse_json(reader(text))
    assert read == value
    assert type(read) is type(value)


def test_an_attribute_is_its_spelling() -> None:
    attribute = JsonAttr.of({"b": 1, "a": [2.0]})
    assert attribute.data == '{"b":1,"a":[2.0]}'
    assert str(attribute) == '#superdsc.json<{"b": 1, "a": [2.0]}>'
    assert reader(str(attribute)).parse_attribute() == attribute


def test_an_attributes_value_is_a_fresh_copy() -> None:
    attribute = JsonAttr.of({"a": []})
    attribute.object["a"] = 1
    assert attribute.value == attribute.object == {"a": []}
    assert JsonAttr.of([1]).object == {}


@pytest.mark.parametrize("text", ["plain", "größe", 'a"b\\n', "line\nbreak\x00", "\ud800"])
def test_any_string_survives_in_ascii(text: str) -> None:
    quoted = written(lambda printer: print_text(printer, text))
    assert quoted.isascii()
    assert parse_optional_text(reader(quoted)) == text


def test_a_string_may_be_missing() -> None:
    assert parse_optional_text(reader("mb")) is None


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("mb", "mb"),
        ("_a$.9", "_a$.9"),
        ("A", "A"),
        ("9a", '"9a"'),
        ("", '""'),
        ("a b", '"a b"'),
        ("a-b", '"a-b"'),
        ("ü", '"\\C3\\BC"'),
    ],
)
def test_words_are_bare_where_they_can_be(word: str, text: str) -> None:
    assert written(lambda printer: print_word(printer, word)) == text
    assert parse_word(reader(text)) == word


def word_map(text: str) -> dict[str, Json]:
    parser = reader(text)
    return parse_word_map(parser, parser.parse_integer)


def test_maps_and_lists_of_words() -> None:
    words: dict[str, Json] = {"mb": 1, "a b": 2}
    text = written(lambda p: print_word_map(p, words, lambda value: p.print_string(str(value))))
    assert text == '{mb = 1, "a b" = 2}'
    assert word_map(text) == words
    text = written(lambda p: print_word_list(p, ["mb", "a b"]))
    assert text == '[mb, "a b"]'
    assert parse_word_list(reader(text)) == ["mb", "a b"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1, "a": 2}', "a key occurs twice in one object"),
        ("{a: 1}", "expected a quoted key"),
        ('{"a" 1}', "Expected ':'"),
        ("nothing", "in a JSON value"),
    ],
)
def test_what_is_no_json_is_refused(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=f"{message}\n"):
        parse_json(reader(text))


def test_what_is_no_word_is_refused() -> None:
    with pytest.raises(ParseError, match="expected a word or a string\n"):
        parse_word(reader("3"))
    with pytest.raises(ParseError, match="a key occurs twice"):
        word_map("{a = 1, a = 2}")
    with pytest.raises(ParseError, match="Expected '='"):
        word_map("{a : 1}")
