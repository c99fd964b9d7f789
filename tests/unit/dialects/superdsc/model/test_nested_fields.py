"""Fields of the objects inside others, against the reference page and the published schema."""

from __future__ import annotations

import json

import pytest

from spyre_mlir.dialects.superdsc.model.backend_fields import BACK_END_TABLES
from spyre_mlir.dialects.superdsc.model.field import Level
from spyre_mlir.dialects.superdsc.model.nested_fields import LABELS, NESTED, OLD_LABELS, PAD_TYPES
from tests.paths import DATA
from tests.unit.dialects.superdsc.model.pages import TITLES, assert_as_published, rows


@pytest.mark.parametrize("level", NESTED)
def test_tables_say_what_the_page_says(level: Level) -> None:
    assert_as_published(level, NESTED[level])
    assert all(field.name == "" for field in NESTED[level].values())


def test_every_object_without_an_op_has_a_table() -> None:
    assert set(NESTED) == set(Level) - set(TITLES)
    assert set(BACK_END_TABLES) < set(NESTED)


def test_labels_of_dims() -> None:
    """The schema lists all but the second of the dims that repeat, under their keys."""
    sizes = json.loads((DATA / "sdsc_schema.json").read_text())["$defs"]["DataStructDims"]["properties"]
    keys = {f"{label}_" for label in (*LABELS, *OLD_LABELS)}
    assert keys - set(sizes) == {"x1_"}
    assert set(sizes) - keys == {"name_", "paddingSizes_", "symbolicDimInfo_"}
    meanings = {key: meaning for key, _, meaning, *_ in rows(Level.SIZES)}
    for label, what in LABELS.items():
        assert meanings[f"`{label}_`"] == f"{what}; -1 for unused, or absent"
    assert all(meanings[f"`{label}_`"] == "an old name" for label in OLD_LABELS)


def test_kinds_of_padding() -> None:
    (row,) = [row for row in rows(Level.COORDINATE) if row[0] == "`padding`"]
    assert row[1] == "a string: " + ", ".join(f"`{kind}`" for kind in PAD_TYPES)
