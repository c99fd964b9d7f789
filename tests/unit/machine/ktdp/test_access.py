"""Views and tiles: from coordinates to addresses, views of several parts, and coordinates that are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects.test import TestOp
from xdsl.ir.affine import AffineConstraintExpr, AffineConstraintKind, AffineExpr

from spyre_mlir.dialects.ktdp.affine import BoxBounds
from spyre_mlir.errors import FaultKind, MachineFault
from spyre_mlir.machine.ktdp.access import (
    AnyTile,
    BoxTile,
    Distributed,
    MemoryView,
    PointTile,
    allowed,
    axes,
    evaluate,
    pieces,
)
from spyre_mlir.machine.ktdp.regions import Scattered, Strided

OP = TestOp()
HALF = np.dtype(np.float16)
D0, D1 = AffineExpr.dimension(0), AffineExpr.dimension(1)
LOWER = AffineConstraintExpr(AffineConstraintKind.ge, D0 - D1, AffineExpr.constant(0))  # d0 >= d1
Array = NDArray[Any]


def view(
    *sizes: int, start: int = 1000, low: tuple[int, ...] | None = None, rules: tuple[AffineConstraintExpr, ...] = ()
) -> MemoryView:
    """A dense view of halves, whose first coordinates are `low`."""
    strides = tuple(2 * int(np.prod(sizes[n + 1 :])) for n in range(len(sizes)))
    first = low or (0,) * len(sizes)
    last = tuple(at + size - 1 for at, size in zip(first, sizes, strict=True))
    return MemoryView(start, sizes, strides, HALF, BoxBounds(first, last, rules), None)


def box(of: MemoryView | Distributed, start: tuple[int, ...], extents: tuple[int, ...], mask: Any = None) -> BoxTile:
    return BoxTile(of, start, extents, tuple(range(len(extents))), None if mask is None else np.asarray(mask))


def addresses(tile: AnyTile) -> Array:
    """Where each element of a tile lies, by the order of the view's dimensions; 0 where none is."""
    found = np.zeros(tile.extents, np.int64)
    for piece in pieces(tile, OP, 0):
        memory = np.arange(0, 4000)
        found[piece.at] += piece.where.read(memory, 0, 1, 1)
    return found


def met(tile: AnyTile, says: str) -> None:
    with pytest.raises(MachineFault, match=says) as caught:
        pieces(tile, OP, 5)
    assert (caught.value.kind, caught.value.place.core) == (FaultKind.OUT_OF_BOUNDS, 5)


@pytest.mark.parametrize(
    ("expr", "value"),
    [
        (D0 + D1, 19),
        (D0 * 3, 51),
        (D0 % 5, 2),
        (D0 // 5, 3),
        (D0.ceil_div(5), 4),
        (D1, 2),
        (AffineExpr.constant(4), 4),
        (AffineExpr.symbol(1) + D0, 27),
    ],
)
def test_an_expression_of_numbers_and_of_arrays(expr: AffineExpr, value: int) -> None:
    assert evaluate(expr, [17, 2], [0, 10]) == value
    assert np.asarray(evaluate(expr, [np.asarray([17, 17]), np.asarray([2])], [0, 10])).max() == value


def test_what_is_no_expression_is_refused() -> None:
    wrong: Any = "d0"
    with pytest.raises(TypeError, match="d0 is no affine expression"):
        evaluate(wrong, [1], [])


def test_the_points_of_a_box() -> None:
    first, second = axes([2, 3])
    assert (first.tolist(), second.tolist()) == ([[0], [1]], [[0, 1, 2]])
    first, second = axes([2, 3], [10, 20])
    assert (first.tolist(), second.tolist()) == ([[10], [11]], [[20, 21, 22]])


@pytest.mark.parametrize(
    ("kind", "mask"),
    [
        (AffineConstraintKind.ge, [[True, False], [True, True]]),
        (AffineConstraintKind.le, [[True, True], [False, True]]),
        (AffineConstraintKind.eq, [[True, False], [False, True]]),
    ],
)
def test_points_that_obey_a_rule(kind: AffineConstraintKind, mask: list[list[bool]]) -> None:
    found = allowed([AffineConstraintExpr(kind, D0, D1)], axes([2, 2]), [2, 2])
    assert found is not None
    assert found.tolist() == mask


def test_points_that_obey_all_rules() -> None:
    assert allowed([], axes([2]), [2]) is None
    both = [AffineConstraintExpr(kind, D0, D1) for kind in (AffineConstraintKind.ge, AffineConstraintKind.le)]
    found = allowed(both, axes([2, 3]), [2, 3])
    assert found is not None
    assert found.tolist() == [[True, False, False], [False, True, False]]


def test_a_view_holds_all_its_elements() -> None:
    assert view(2, 3).everything == Strided(1000, (2, 3), (6, 2))
    assert Distributed((view(2, 3), view(1, 3)), (3, 3)).kind is HALF


def test_a_box_of_a_view() -> None:
    """Rows 1 and 2, columns 3 to 5 of (4, 8): row 1 begins at 1016, column 3 six bytes behind."""
    (piece,) = pieces(box(view(4, 8), (1, 3), (2, 3)), OP, 0)
    assert piece.where == Strided(1022, (2, 3), (16, 2))
    assert piece.at == (slice(None), slice(None))


@pytest.mark.parametrize(
    ("start", "extents", "says"),
    [
        ((1, 6), (2, 3), "coordinates 6 to 8 along d1, the view has 0 to 7"),
        ((3, 0), (2, 1), "coordinates 3 to 4 along d0, the view has 0 to 3"),
        ((-1, 0), (1, 1), "coordinates -1 to -1 along d0"),
    ],
)
def test_a_box_beyond_the_view_is_refused(start: tuple[int, int], extents: tuple[int, int], says: str) -> None:
    met(box(view(4, 8), start, extents), says)


def test_a_box_up_to_the_ends_of_the_view() -> None:
    assert addresses(box(view(4, 8), (0, 0), (4, 8))).reshape(-1).tolist() == [*range(1000, 1064, 2)]


def test_coordinates_that_the_view_s_set_leaves_out() -> None:
    lower = view(4, 4, rules=(LOWER,))
    assert addresses(box(lower, (2, 0), (2, 3))).tolist() == [[1016, 1018, 1020], [1024, 1026, 1028]]
    met(box(lower, (2, 0), (2, 4)), "the view's set leaves out")
    assert len(pieces(box(view(4, 4, low=(1, 0), rules=(LOWER,)), (0, 1), (1, 1)), OP, 0)) == 1


def test_a_masked_box_covers_what_counts() -> None:
    mask = [[True, False], [True, True]]
    (piece,) = pieces(box(view(4, 8), (1, 3), (2, 2), mask), OP, 0)
    assert isinstance(piece.where, Scattered)
    assert piece.where.addresses.tolist() == [1022, 1038, 1040]
    assert piece.at is not None
    assert np.asarray(piece.at).tolist() == mask


def test_only_what_counts_must_be_inside() -> None:
    mask = [[True, False], [True, False]]
    assert addresses(box(view(4, 8), (1, 7), (2, 2), mask)).tolist() == [[1030, 0], [1046, 0]]
    met(box(view(4, 8), (1, 7), (2, 2), [[False, True], [False, False]]), "beyond 7 along d1")
    met(box(view(4, 8), (-1, 0), (2, 2), [[False, True], [False, False]]), "beyond 3 along d0")
    assert addresses(box(view(4, 8), (-1, 0), (2, 1), [[False], [True]])).tolist() == [[0], [1000]]


def test_points_that_were_computed() -> None:
    """Rows 3, 0 and 3 of a view, columns 1 and 2."""
    coordinates = (np.asarray([[3], [0], [3]]), np.asarray([[1, 2]]))
    tile = PointTile(view(4, 8), coordinates, (3, 2), (0, 1), None)
    (piece,) = pieces(tile, OP, 0)
    assert isinstance(piece.where, Scattered)
    assert piece.where.addresses.tolist() == [[1050, 1052], [1002, 1004], [1050, 1052]]
    assert piece.at == (slice(None), slice(None))
    mask = np.asarray([[True, False], [False, True], [False, False]])
    (piece,) = pieces(PointTile(view(4, 8), coordinates, (3, 2), (0, 1), mask), OP, 0)
    assert isinstance(piece.where, Scattered)
    assert piece.where.addresses.tolist() == [1050, 1004]
    assert piece.at is mask


# --- one tensor of several views: columns 0 to 3 at 1000, columns 4 to 7 at 2000


HALVES = Distributed((view(3, 4), view(3, 4, start=2000, low=(0, 4))), (3, 8))


def test_a_tile_in_two_parts() -> None:
    tile = box(HALVES, (1, 2), (2, 4))
    assert addresses(tile).tolist() == [[1012, 1014, 2008, 2010], [1020, 1022, 2016, 2018]]
    left, right = pieces(tile, OP, 0)
    assert left.at == (slice(0, 2), slice(0, 2))
    assert right.at == (slice(0, 2), slice(2, 4))


@pytest.mark.parametrize(("column", "address"), [(3, 1006), (4, 2000)])
def test_a_tile_in_one_of_two_parts(column: int, address: int) -> None:
    assert addresses(box(HALVES, (0, column), (1, 1))).tolist() == [[address]]


def test_a_masked_tile_in_two_parts() -> None:
    mask = [[True, False, False, True], [False, True, True, False]]
    assert addresses(box(HALVES, (1, 2), (2, 4), mask)).tolist() == [[1012, 0, 0, 2010], [0, 1022, 2016, 0]]


def test_a_part_of_a_set_and_the_rest() -> None:
    """Of (2, 2) the lower triangle is at 1000, and what is above it at 2000."""
    above = AffineConstraintExpr(AffineConstraintKind.ge, D1 - D0 - 1, AffineExpr.constant(0))
    whole = Distributed((view(2, 2, rules=(LOWER,)), view(2, 2, start=2000, rules=(above,))), (2, 2))
    assert addresses(box(whole, (0, 0), (2, 2))).tolist() == [[1000, 2002], [1004, 1006]]
    mask = [[True, True], [False, True]]
    assert addresses(box(whole, (0, 0), (2, 2), mask)).tolist() == [[1000, 2002], [0, 1006]]


def test_a_part_of_a_set_that_begins_elsewhere() -> None:
    """Rows and columns 1 and 2, where the row is not less than the column."""
    moved = Distributed((view(2, 2, low=(1, 1), rules=(LOWER,)),), (3, 3))
    assert addresses(box(moved, (1, 1), (2, 2), [[True, False], [True, True]])).tolist() == [[1000, 0], [1004, 1006]]


def test_parts_hold_each_coordinate_once() -> None:
    gap = Distributed((view(3, 3), view(3, 4, start=2000, low=(0, 4))), (3, 8))
    met(box(gap, (0, 1), (2, 4)), "2 coordinates are in no part")
    assert addresses(box(gap, (0, 2), (1, 3), [[True, False, True]])).tolist() == [[1004, 0, 2000]]
    both = Distributed((view(3, 5), view(3, 4, start=2000, low=(0, 4))), (3, 8))
    met(box(both, (0, 1), (2, 4)), "two parts hold; parts must be disjoint")
    lower = Distributed((view(2, 2, rules=(LOWER,)), view(2, 2, start=2000)), (2, 2))
    met(box(lower, (0, 0), (2, 2)), "two parts hold")
    met(box(HALVES, (0, 6), (1, 3)), "coordinates 6 to 8 along d1, the view has 0 to 7")
    met(box(HALVES, (2, 0), (2, 1)), "coordinates 2 to 3 along d0, the view has 0 to 2")
    met(box(HALVES, (0, -1), (1, 2)), "coordinates -1 to 0 along d1")
