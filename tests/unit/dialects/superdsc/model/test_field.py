"""What a field is: its defaults, and the words in which types, objects and writers are named on the reference page."""

from __future__ import annotations

from spyre_mlir.dialects.superdsc.model.field import Field, FieldWriter, Inner, JsonKind, Level, Shape, table
from tests.unit.dialects.superdsc.model.pages import TITLES, tables

FIELD = Field("key_", "key", JsonKind.INT, "what it means", "C")


def test_a_plain_field_is_everybodys() -> None:
    assert (FIELD.writer, FIELD.default, FIELD.allowed, FIELD.inner) == (FieldWriter.ALL, "", (), None)
    assert Inner(Level.FOLDS) == Inner(Level.FOLDS, Shape.ONE)


def test_fields_and_what_is_inside_are_values() -> None:
    assert len({FIELD, Field("key_", "key", JsonKind.INT, "what it means", "C")}) == 1
    assert len({Inner(Level.FOLDS), Inner(Level.FOLDS)}) == 1


def test_a_table_keeps_its_order_under_the_keys() -> None:
    other = Field("a_", "a", JsonKind.TEXT, "before", "L")
    assert list(table(FIELD, other).items()) == [("key_", FIELD), ("a_", other)]
    assert table() == {}


def test_the_page_uses_the_words_of_the_model() -> None:
    titles = [title for level in Level if (title := TITLES.get(level, level.value.capitalize()))]
    assert list(tables())[-len(titles) :] == titles
    cells = [row for title in titles for row in tables()[title]]
    assert {row[4] for row in cells} == {writer.value for writer in FieldWriter}
    for kind in JsonKind:
        assert any(row[1].startswith(kind.value) for row in cells), kind


def test_objects_with_an_op_are_called_as_the_op() -> None:
    ops = ["sdsc", "dsc", "allocate", "labeled_ds", "constant", "compute"]
    assert [level.value for level in Level if "." in level.value] == [f"superdsc.{name}" for name in ops]


def test_shapes() -> None:
    assert [shape.value for shape in Shape] == ["one", "list of", "by name", "list of, each under its name"]
