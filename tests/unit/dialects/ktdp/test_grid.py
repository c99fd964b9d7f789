"""The grid of a function, and the places of cores in it."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ArrayAttr, IndexType, IntegerAttr, StringAttr, i64
from xdsl.dialects.func import FuncOp
from xdsl.dialects.test import TestOp
from xdsl.ir import Attribute, Block, Region
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.dialects.ktdp.grid import (
    MOST_GRID_DIMENSIONS,
    CoreidOp,
    GetComputeTileIdOp,
    enclosing_grid,
    grid_of,
)
from tests.unit.dialects.texts import function, lines_of, only, read


def with_grid(grid: Attribute | None) -> FuncOp:
    made = FuncOp("f", ([], []))
    if grid is not None:
        made.attributes["grid"] = grid
    return made


def numbers(*values: int) -> ArrayAttr[Attribute]:
    return ArrayAttr([IntegerAttr(value, i64) for value in values])


@pytest.mark.parametrize(
    ("given", "grid"),
    [
        (None, (1,)),
        (numbers(32), (32,)),
        (numbers(4, 8), (4, 8)),
        (numbers(2, 2, 8), (2, 2, 8)),
        (numbers(1, 1, 1), (1, 1, 1)),
    ],
)
def test_grid_of_a_function(given: Attribute | None, grid: tuple[int, ...]) -> None:
    assert grid_of(with_grid(given)) == grid
    assert len(grid) <= MOST_GRID_DIMENSIONS == 3


@pytest.mark.parametrize(
    "given",
    [numbers(), numbers(1, 1, 1, 1), numbers(4, 0), numbers(-1), ArrayAttr([StringAttr("4")]), IntegerAttr(4, i64)],
)
def test_a_grid_is_a_list_of_positive_numbers(given: Attribute) -> None:
    with pytest.raises(VerifyException, match="grid is a list of 1 to 3 positive numbers, got "):
        grid_of(with_grid(given))


@pytest.mark.parametrize(("extents", "cores"), [((33,), 33), ((4, 9), 36)])
def test_a_grid_has_no_more_cores_than_the_card(extents: tuple[int, ...], cores: int) -> None:
    with pytest.raises(VerifyException, match=rf"grid \[.*\] has {cores} cores, the card has 32$"):
        grid_of(with_grid(numbers(*extents)))


def test_grid_around_an_op() -> None:
    inner = TestOp()
    block = Block([TestOp(regions=[Region(Block([inner]))])])
    assert enclosing_grid(inner) is None
    made = FuncOp("f", ([], []), Region(block))
    made.attributes["grid"] = numbers(4, 8)
    assert enclosing_grid(inner) == (4, 8)
    assert enclosing_grid(made) is None


@pytest.mark.parametrize(
    ("grid", "line"),
    [
        ("", "%core = ktdp.get_compute_tile_id : index"),
        ("[4, 8]", "%i, %j = ktdp.get_compute_tile_id {note} : index, index"),
        ("[4, 1, 1]", "%i = ktdp.get_compute_tile_id : index"),  # dimensions of one core are left out
    ],
)
def test_place_of_the_running_core(grid: str, line: str) -> None:
    module = read(function("", line, grid=grid))
    assert line in lines_of(module)
    assert [one.type for one in only(module, GetComputeTileIdOp).ids] == [IndexType()] * (1 + line.count("%j"))


@pytest.mark.parametrize(
    ("grid", "results", "said"),
    [
        ("[4, 8]", 1, r"1 results, the grid is \[4, 8\]"),
        ("[1, 8]", 1, r"1 results, the grid is \[1, 8\]"),
        ("[4]", 2, r"2 results, the grid is \[4\]"),
    ],
)
def test_one_result_per_dimension_of_the_grid(grid: str, results: int, said: str) -> None:
    names, types = ", ".join(f"%r{n}" for n in range(results)), ", ".join(["index"] * results)
    with pytest.raises(VerifyException, match=f"one result per dimension of the grid: {said}"):
        read(function("", f"{names} = ktdp.get_compute_tile_id : {types}", grid=grid))


def test_places_outside_of_functions() -> None:
    GetComputeTileIdOp().verify()
    assert len(GetComputeTileIdOp().ids) == 1
    three = GetComputeTileIdOp(3)
    three.verify()
    assert len(three.ids) == 3
    with pytest.raises(VerifyException, match=r"one result per dimension of the grid: 0 results\n"):
        GetComputeTileIdOp(0).verify()


def test_number_of_a_core() -> None:
    line = "%c = ktdp.coreid %i, %j {note} : index"
    module = read(function("%i: index, %j: index", line, grid="[4, 8]"))
    assert line in lines_of(module)
    made = CoreidOp(only(module, CoreidOp).coordinates)
    assert made.result.type == IndexType()
    made.verify()
    with pytest.raises(VerifyException, match=r"one coordinate per dimension of the grid \[32\], got 2"):
        read(function("%i: index, %j: index", line, grid="[32]"))
