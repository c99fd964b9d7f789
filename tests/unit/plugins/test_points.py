"""What is registered at a point comes in order of priority, and is gone behind its block."""

from __future__ import annotations

from enum import Enum

from spyre_mlir.ops.call_info import Registered
from spyre_mlir.plugins.points import AtPoints


class Place(Enum):
    HERE = "here"
    THERE = "there"


def registered(name: str, priority: int = 0) -> Registered:
    return Registered(name, print, "me", priority)


def test_the_highest_priority_comes_first_and_equal_ones_stay_in_order() -> None:
    table = AtPoints[Place]()
    for one in (registered("a"), registered("b", 5), registered("c"), registered("d", -1)):
        table.add(Place.HERE, one)
    assert [one.op for one in table.at(Place.HERE)] == ["b", "a", "c", "d"]
    assert table.at(Place.THERE) == []
    table.at(Place.HERE).clear()
    assert len(table.at(Place.HERE)) == 4


def test_a_block_undoes_what_is_registered_inside_it() -> None:
    table = AtPoints[Place]()
    table.add(Place.HERE, registered("a"))
    with table.isolated():
        table.add(Place.HERE, registered("b", 1))
        table.add(Place.THERE, registered("c"))
        assert [one.op for one in table.at(Place.HERE)] == ["b", "a"]
    assert [one.op for one in table.at(Place.HERE)] == ["a"]
    assert table.at(Place.THERE) == []
