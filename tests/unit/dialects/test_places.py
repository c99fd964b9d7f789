"""Places in a model: as text, as locations, and back."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, LocationAttr, NameLoc, StringAttr, UnitAttr, UnknownLoc
from xdsl.ir import Attribute

from spyre_mlir.dialects.places import Source, location_of, source_of

LINE = FileLineColLoc(StringAttr("model.py"), IntAttr(12), IntAttr(0))


def named(name: str, inner: LocationAttr) -> NameLoc:
    return NameLoc(StringAttr(name), inner)


@pytest.mark.parametrize(
    ("source", "text", "location"),
    [
        (Source(), "", UnknownLoc()),
        (Source("model.py", 12), "model.py:12", LINE),
        (Source(module="layers.0.mlp"), "(layers.0.mlp)", named("layers.0.mlp", UnknownLoc())),
        (Source("model.py", 12, "layers.0.mlp"), "model.py:12 (layers.0.mlp)", named("layers.0.mlp", LINE)),
    ],
)
def test_text_and_location_of_a_place(source: Source, text: str, location: LocationAttr) -> None:
    assert str(source) == text
    assert bool(source) is bool(text)
    assert location_of(source) == location
    assert source_of(location) == source


def test_the_outer_name_is_the_module() -> None:
    assert source_of(named("layers.0", named("relu", LINE))) == Source("model.py", 12, "layers.0")
    assert source_of(named("", named("relu", LINE))) == Source("model.py", 12, "relu")


def test_a_place_is_known_by_what_it_says() -> None:
    assert {Source("model.py", 12), Source("model.py", 12), Source("model.py", 13)} == {
        Source("model.py", 13),
        Source("model.py", 12),
    }


@pytest.mark.parametrize("other", [UnitAttr(), UnknownLoc()])
def test_other_locations_say_nothing(other: Attribute) -> None:
    assert source_of(other) == Source()
    assert not source_of(other)
