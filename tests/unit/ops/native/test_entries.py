"""Entries replaced, against indexing of numpy."""

from __future__ import annotations

import numpy as np
import pytest

from spyre_mlir.errors import ConstraintError
from spyre_mlir.ops.native.entries import PUT_ENTRY, PUT_PAGE, put_entry_shape, put_page_shape
from tests.unit.ops.evaluation import result, results, same

X = np.arange(24.0).reshape(2, 3, 4)


@pytest.mark.parametrize(("positions", "at"), [([4], 4), ([9, -2], 4)])
def test_a_place_of_an_entry_is_replaced(positions: list[int], at: int) -> None:
    wanted = X.copy()
    wanted[1, 1] = -1
    new, number = np.full((1, 1, 4), -1.0), len(positions) - 1
    given = X, new, np.array(positions), np.array([float(at)])
    same(result(PUT_ENTRY, *given, dim=0, number=number, per=3), wanted)


def test_an_entry_is_replaced() -> None:
    wanted = X.copy()
    wanted[:, 2] = -1
    given = X, np.full((2, 1, 4), -1.0), np.array([2]), np.array([2.0])
    same(result(PUT_ENTRY, *given, dim=1, number=0), wanted)


@pytest.mark.parametrize(("position", "place"), [(3, 3.0), (-4, 2.0), (1, 2.0)])
def test_a_place_is_inside_and_what_its_position_says(position: int, place: float) -> None:
    given = X, np.zeros((2, 1, 4)), np.array([position]), np.array([place])
    with pytest.raises(ConstraintError, match="C4"):
        results(PUT_ENTRY, *given, dim=1, number=0)


@pytest.mark.parametrize(
    ("entry", "positions", "place", "per", "rule"),
    [
        ((1, 1, 4), (1,), (1,), 2, "C1"),
        ((1, 3, 4), (1,), (1,), 3, "C2"),
        ((1, 3, 4), (1,), (1,), 1, None),
        ((1, 1, 4), (0,), (1,), 3, "C3"),
        ((1, 1, 4), (1,), (), 3, "C4"),
    ],
)
def test_shapes_agree(
    entry: tuple[int, ...], positions: tuple[int, ...], place: tuple[int, ...], per: int, rule: str | None
) -> None:
    def shape() -> tuple[int, ...]:
        return put_entry_shape(X.shape, entry, positions, place, dim=0, number=0, per=per)

    if rule is None:
        assert shape() == X.shape
        return
    with pytest.raises(ConstraintError, match=rule):
        shape()


@pytest.mark.parametrize(("positions", "count"), [([9, 3, 4, 5], 3), ([9, -3, -2, -1], 3), ([9, 3, 4], 2)])
def test_the_first_places_of_an_entry_are_replaced(positions: list[int], count: int) -> None:
    wanted = X.copy()
    wanted[1, :count] = -1
    given = X, np.full((1, 3, 4), -1.0), np.array(positions)
    same(result(PUT_PAGE, *given, dim=0, number=1, count=count), wanted)


@pytest.mark.parametrize("positions", [[1, 2, 3], [0, 2, 1], [0, 1, 3], [6, 7, 8], [-7, -6, -5]])
def test_places_that_are_no_entry(positions: list[int]) -> None:
    with pytest.raises(ConstraintError, match="C4"):
        results(PUT_PAGE, X, np.zeros((1, 3, 4)), np.array(positions), dim=0, number=0, count=3)


@pytest.mark.parametrize(
    ("entry", "number", "count", "rule"),
    [((1, 3, 4), 0, 4, "C1"), ((1, 3, 4), 0, 0, "C1"), ((1, 2, 4), 0, 2, "C2"), ((1, 3, 4), 1, 3, "C3")],
)
def test_shapes_of_places_agree(entry: tuple[int, ...], number: int, count: int, rule: str) -> None:
    with pytest.raises(ConstraintError, match=rule):
        put_page_shape(X.shape, entry, (3,), dim=0, number=number, count=count)
