"""Start addresses as sums over slices and constants as bits, on four cores worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from spyre_mlir.dialects.superdsc.dialect.compact import expand, shorten
from spyre_mlir.dialects.superdsc.model.descriptor import Version
from spyre_mlir.dialects.superdsc.model.fields import Level
from spyre_mlir.dialects.superdsc.model.file_context import FileContext
from spyre_mlir.dialects.superdsc.model.json_value import Json
from tests.unit.dialects.superdsc.dialect.texts import constant, starts

# mb is the fastest: cores 0 to 3 have slices (0, 0), (1, 0), (0, 1), (1, 1).
FOUR = FileContext(splits={"mb": 2, "out": 2})
START, DATA = "startAddressCoreCorelet_", "data_"


@pytest.mark.parametrize(
    ("addresses", "short"),
    [
        (["0", "128", "1024", "1152"], {"base": 0, "steps": {"mb": 128, "out": 1024}}),
        (["4096", "4096", "8192", "8192"], {"base": 4096, "steps": {"out": 4096}}),
        (["256"] * 4, {"base": 256, "steps": {}}),
        (["-1", "-2", "-3", "-4"], {"base": -1, "steps": {"mb": -1, "out": -2}}),
        (["0", "128", "1024", "1280"], [0, 128, 1024, 1280]),
        (["0", "128", "1024"], [0, 128, 1024]),
    ],
)
def test_starts_are_sums_where_slices_lie_evenly(addresses: list[Json], short: Json) -> None:
    assert shorten(Level.ALLOCATE, START, starts(*addresses), FOUR) == short
    assert expand(Level.ALLOCATE, short, FOUR) == starts(*addresses)


def test_starts_without_a_division_are_listed() -> None:
    assert shorten(Level.ALLOCATE, START, starts("0", "128"), FileContext()) == [0, 128]


def test_dims_of_one_slice_have_no_step() -> None:
    context = FileContext(splits={"mb": 2, "x": 1})
    short = {"base": 0, "steps": {"mb": 128}}
    assert shorten(Level.ALLOCATE, START, starts("0", "128"), context) == short


@pytest.mark.parametrize(
    "addresses", [[0], ["00"], ["x"], ["²"], ["--1"], ["1.5"], ["0", 1], [], ["-0"], ["9" * 5000], [None]]
)
def test_odd_addresses_stay_long(addresses: list[Json]) -> None:
    assert shorten(Level.ALLOCATE, START, starts(*addresses), FOUR) is None


@pytest.mark.parametrize("value", [{}, {"data_": {"[0, 0, 0]": "0"}}, 3, {"data_": 3}, starts("0") | {"more": 1}])
def test_odd_managers_stay_long(value: Json) -> None:
    assert shorten(Level.ALLOCATE, START, value, FOUR) is None


@pytest.mark.parametrize(
    ("short", "context"),
    [
        ({"base": 0, "steps": {"mb": 1}}, FileContext()),
        ({"base": 0, "steps": {"x": 1}}, FOUR),
        ({"steps": {"mb": 1}}, FOUR),
        ({"base": 0}, FOUR),
        ({"base": 0, "steps": {"mb": "1"}}, FOUR),
        (3, FOUR),
    ],
)
def test_sums_need_slices_of_their_dims(short: Json, context: FileContext) -> None:
    assert expand(Level.ALLOCATE, short, context) is None


def test_constants_are_their_bits() -> None:
    newest = FileContext(version=Version.TSNEW, splits={"mb": 2, "out": 2})
    assert shorten(Level.CONSTANT, DATA, constant(7), FOUR) == 7
    assert expand(Level.CONSTANT, 7, FOUR) == constant(7)
    assert shorten(Level.CONSTANT, DATA, constant("7"), newest) == 7
    assert expand(Level.CONSTANT, 7, newest) == constant("7")


@pytest.mark.parametrize(
    "value",
    [
        constant("7"),
        constant(7, 7),
        constant(),
        constant(True),
        constant("x"),
        constant("²"),
        constant("9" * 5000),
        {},
        3,
        {"data_": 3},
    ],
)
def test_odd_constants_stay_long(value: Json) -> None:
    assert shorten(Level.CONSTANT, DATA, value, FOUR) is None


def test_constants_need_a_number_and_cores() -> None:
    assert shorten(Level.CONSTANT, DATA, constant(7), FileContext()) is None
    assert expand(Level.CONSTANT, "7", FOUR) is None


@pytest.mark.parametrize(
    ("level", "key", "value"),
    [
        (Level.ALLOCATE, "coordinates_", starts("0")),
        (Level.CONSTANT, START, constant(7)),
        (Level.ALLOCATE, DATA, constant(7)),
        (Level.DSC, START, starts("0")),
    ],
)
def test_nothing_else_has_a_short_form(level: Level, key: str, value: Any) -> None:
    assert shorten(level, key, value, FOUR) is None
