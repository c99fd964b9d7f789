"""Back gaps: elements allocated beyond the used ones, counted by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from spyre_mlir.dialects.superdsc.codec.gaps import back_gaps, unclear_gaps
from spyre_mlir.dialects.superdsc.model.descriptor import Dim, Operand, Window
from tests.unit.dialects.superdsc.cases import DL16, small_add

PLAIN = small_add().operands[0]


@pytest.mark.parametrize(
    ("changes", "gaps"),
    [
        ({}, {}),
        ({"extents": (10, 128)}, {"mb": 6}),
        ({"extents": (10, 256)}, {"mb": 6, "out": 128}),
        ({"extents": (4, 129)}, {"out": 64}),  # three sticks where two are used
        ({"extents": (4, 192)}, {"out": 64}),
        ({"extents": (3, 128)}, {"mb": -1}),
        ({"extents": (4, 64)}, {"out": -64}),
        ({"extents": (2, 128), "component": "lx"}, {}),  # two rows of each of two cores
        ({"extents": (3, 128), "component": "lx"}, {"mb": 1}),
        ({"order": ("mb",), "extents": (5,), "stick": None}, {"mb": 1}),
    ],
)
def test_gaps_of_an_operand(changes: dict[str, Any], gaps: dict[str, int]) -> None:
    assert back_gaps(small_add(), replace(PLAIN, **changes)) == gaps


def test_a_distribution_of_its_own_says_what_a_core_holds() -> None:
    """Each core holds all rows of one of two sticks."""
    own = ({"mb": 0, "out": 0}, {"mb": 0, "out": 1})
    local = Operand(("mb", "out"), (4, 64), "out", DL16, ("0", "0"), component="lx", slices=own)
    assert back_gaps(small_add(), local) == {}
    assert back_gaps(small_add(), replace(local, extents=(5, 128))) == {"mb": 1, "out": 64}


def test_a_distribution_may_leave_a_dim_out() -> None:
    local = Operand(("mb", "out"), (4, 64), "out", DL16, ("0", "0"), component="lx", slices=({"out": 0}, {"out": 1}))
    assert back_gaps(small_add(), local) == {}


def test_what_windows_walk_over_has_no_gap() -> None:
    """What is there beside the windows' outputs is said by the window."""
    windowed = small_add(windows=(Window("mb", "ki", 10),))
    assert back_gaps(windowed, replace(PLAIN, extents=(10, 192))) == {"out": 64}


ROWS, COLUMNS, BATCH = Dim("mb", 128), Dim("out", 64), Dim("x", 2)


@pytest.mark.parametrize(
    ("extents", "function", "unclear"),
    [
        ((2, 128, 64), "ReStickifyOpHBM", []),
        ((3, 128, 64), "ReStickifyOpHBM", []),  # nothing pads a dim that is in no stick
        ((2, 192, 64), "ReStickifyOpHBM", []),
        ((2, 129, 64), "ReStickifyOpHBM", [(0, "mb", 1)]),
        ((2, 129, 64), "identity", []),
    ],
)
def test_gaps_that_may_be_shortfalls(extents: tuple[int, ...], function: str, unclear: list[Any]) -> None:
    """The rows become the lanes."""
    source = Operand(("x", "mb", "out"), extents, "out", DL16, ("0",))
    target = Operand(("x", "out", "mb"), (2, 64, 128), "mb", DL16, ("65536",))
    assert list(unclear_gaps(function, (ROWS, COLUMNS, BATCH), (source, target))) == unclear
    assert list(unclear_gaps(function, (ROWS, COLUMNS, BATCH), (source, source))) == []
