"""Reads and writes of steps; that each gives what torch gives is a test of all steps."""

from __future__ import annotations

import numpy as np

from spyre_mlir.ops.helpers.index_moves import MOVES, MOVES_BY_ONE
from spyre_mlir.ops.helpers.index_steps import STEPS

A = np.array([[5, 6, 7], [8, 9, 10]])


def test_indices_outside_read_the_nearest() -> None:
    outside = np.array([-9, -1, 9])
    assert MOVES["index_select"](self=A, dim=0, index=outside).tolist() == [A[0].tolist(), A[1].tolist(), A[1].tolist()]
    assert MOVES["gather"](self=A, dim=1, index=outside[None]).tolist() == [[5, 7, 7]]
    assert MOVES["index"](self=A, indices=(outside, outside)).tolist() == [5, 10, 10]
    assert MOVES["embedding"](weight=A[:, 0], indices=outside).tolist() == [5, 8, 8]


def test_writes_leave_their_operands() -> None:
    before = A.copy()
    MOVES["slice_scatter"](self=A, src=np.zeros((1, 3)), start=1)
    MOVES["select_scatter"](self=A, src=np.zeros(2), dim=1, index=0)
    assert np.array_equal(A, before)


def test_all_moves_are_steps() -> None:
    assert {*MOVES, *MOVES_BY_ONE} <= {*STEPS}
