"""Registrations at points: their order, the block that undoes them, and points by name."""

from __future__ import annotations

from enum import Enum

import pytest

from spyre_mlir.errors import RegistrationError
from spyre_mlir.ops.call_info import Registered
from spyre_mlir.plugins.points import AtPoints


class Place(Enum):
    HERE = "here"
    THERE = "there"


def registered(name: str, priority: int = 0) -> Registered:
    return Registered(name, print, "me", priority)


def test_the_highest_priority_comes_first_and_equal_ones_stay_in_order() -> None:
    table = AtPoints(Place, "things")
    for one in (registered("a"), registered("b", 5), registered("c"), registered("d", -1)):
        table.add(Place.HERE, one)
    assert [one.op for one in table.at(Place.HERE)] == ["b", "a", "c", "d"]
    assert table.at(Place.THERE) == []
    table.at(Place.HERE).clear()
    assert len(table.at(Place.HERE)) == 4


def test_a_block_undoes_what_is_registered_inside_it() -> None:
    table = AtPoints(Place, "things")
    table.add(Place.HERE, registered("a"))
    with table.isolated():
        table.add(Place.HERE, registered("b", 1))
        table.add(Place.THERE, registered("c"))
        assert [one.op for one in table.at(Place.HERE)] == ["b", "a"]
    assert [one.op for one in table.at(Place.HERE)] == ["a"]
    assert table.at(Place.THERE) == []


def test_a_point_is_found_by_its_name() -> None:
    table = AtPoints(Place, "things")
    assert table.point("there") is table.point(Place.THERE) is Place.THERE
    with pytest.raises(RegistrationError, match="there is no point 'nowhere' for things") as caught:
        table.point("nowhere")
    assert caught.value.hint == "the points are here, there"
