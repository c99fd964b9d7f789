"""One line about elements that rounding put on the other side of a step."""

from __future__ import annotations

import pytest

from spyre_mlir.dialects.flips import NEAR, Flip
from spyre_mlir.dialects.places import Source


@pytest.mark.parametrize(
    ("source", "elements", "said"),
    [
        (Source("model.py", 12), 1, "1 of 2,048,000 elements of aten.floor from model.py:12 is decided"),
        (Source(), 1500, "1,500 of 2,048,000 elements of aten.floor are decided"),
        (Source(), 0, "0 of 2,048,000 elements of aten.floor are decided"),
    ],
)
def test_how_many_elements_and_of_which_op(source: Source, elements: int, said: str) -> None:
    line = str(Flip("floor", source, elements, 2_048_000))
    assert line == f"step: {said} by rounding, within 4 units in the last place of the boundary"


def test_flips_are_equal_where_they_say_the_same() -> None:
    assert len({Flip("floor", Source(), 1, 8), Flip("floor", Source(), 1, 8), Flip("floor", Source(), 2, 8)}) == 2


def test_a_boundary_is_near_within_four_units() -> None:
    assert NEAR == 4
