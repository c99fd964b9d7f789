"""Places in a model: as text, as locations, and back."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import (
    FileLineColLoc,
    IntAttr,
    LocationAttr,
    ModuleOp,
    NameLoc,
    StringAttr,
    UnitAttr,
    UnknownLoc,
)
from xdsl.ir import Attribute, Operation

from spyre_mlir.dialects.places import Rebase, Source, common_module, location_of, numbered, source_of
from spyre_mlir.dialects.places import named as name_operators

LINE_3 = FileLineColLoc(StringAttr("m.py"), IntAttr(3), IntAttr(0))
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


def test_an_operator_is_in_the_location_and_no_part_of_the_place() -> None:
    (op,) = ops_at("layers.0.mlp")
    name_operators([(op, "aten.softmax.int")])
    source = source_of(op.location)
    assert op.location == named("@aten.softmax.int", named("layers.0.mlp", LINE_3))
    assert (source.operator, str(source), source.number) == ("aten.softmax.int", "m.py:3 (layers.0.mlp)", 0)
    assert source == Source("m.py", 3, "layers.0.mlp"), "places are grouped by line and module"
    numbered([op])
    assert (source_of(op.location).operator, source_of(op.location).number) == ("aten.softmax.int", 1)
    moved = source_of(Rebase("layers.0", "layers.3").location(op.location))
    assert (moved.operator, moved.module) == ("aten.softmax.int", "layers.3.mlp")


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


def ops_at(*modules: str) -> list[Operation]:
    made: list[Operation] = []
    for module in modules:
        made.append(ModuleOp([]))
        made[-1].location = location_of(Source("m.py", 3, module))
    return made


def test_the_module_that_ops_share() -> None:
    assert common_module(ops_at("layers.0.mlp.up", "layers.0.mlp", "layers.0.norm")) == "layers.0"
    assert common_module([*ops_at("layers.0.mlp"), ModuleOp([])]) == "layers.0.mlp"
    assert common_module([]) == ""


def test_places_at_a_call_of_a_region() -> None:
    (call,) = ops_at("layers.3")
    places = Rebase.of(ops_at("layers.0.mlp.up", "layers.0.mlp"), call)
    assert places == Rebase("layers.0", "layers.3")
    assert places.source(Source("m.py", 3, "layers.0.mlp")) == Source("m.py", 3, "layers.3.mlp")
    assert places.source(Source("m.py", 3, "layers.01")) == Source("m.py", 3, "layers.01")
    assert places.text("m.py:3 (layers.0.mlp), layers.01") == "m.py:3 (layers.3.mlp), layers.01"
    assert source_of(places.location(ops_at("layers.0")[0].location)).module == "layers.3"


def test_a_call_without_a_place_leaves_places_as_they_are() -> None:
    places = Rebase.of(ops_at("layers.0"), ModuleOp([]))
    assert places.source(Source("m.py", 3, "layers.0")).module == "layers.0"
    assert places.text("layers.0") == "layers.0"


def test_numbered_ops_keep_their_places_and_follow_their_calls() -> None:
    ops = ops_at("layers.0.up", "layers.0.down", "", "layers.1.up", "layers.1.down")
    numbered(ops)
    assert [source_of(op.location).number for op in ops] == [1, 2, 3, 4, 5]
    assert source_of(ops[1].location) == Source("m.py", 3, "layers.0.down", 2)
    (call, function) = ops_at("layers.1", "layers.0")
    call.location, function.location = (
        location_of(Source(module=f"layers.{n}", number=m)) for n, m in ((1, 4), (0, 1))
    )
    places = Rebase.of(ops[:2], call, function)
    assert source_of(places.location(ops[1].location)) == Source("m.py", 3, "layers.1.down", 5)
    unknown = Rebase.of(ops[:2], call, ops_at("layers.0")[0])
    assert source_of(unknown.location(ops[1].location)).number == 0, "a number of another layer is worse than none"
