"""Collectives of three ranks worked out by hand; end_to_end/ranks compares them with torch."""

from __future__ import annotations

import numpy as np
import pytest

from spyre_mlir.errors import ConstraintError
from spyre_mlir.ops import ATEN
from spyre_mlir.ops.native import collectives as of
from spyre_mlir.ops.native.collectives import NAMES, NAMESPACE, WAIT, is_collective, overloads
from spyre_mlir.ops.table import Family

RANKS = [np.array([[1.0], [2.0], [3.0]]), np.array([[5.0], [5.0], [5.0]]), np.array([[0.0], [-1.0], [7.0]])]


@pytest.mark.parametrize(
    ("reduce_op", "wanted"),
    [("sum", [6, 6, 15]), ("product", [0, -10, 105]), ("min", [0, -1, 3]), ("max", [5, 5, 7]), ("avg", [2, 2, 5])],
)
def test_reductions(reduce_op: str, wanted: list[float]) -> None:
    for result in of.all_reduce.meaning(RANKS, reduce_op=reduce_op, group_name="0"):
        np.testing.assert_array_equal(result[:, 0], wanted)
    scattered = of.reduce_scatter_tensor.meaning(RANKS, reduce_op=reduce_op, group_size=3, group_name="0")
    assert [r.tolist() for r in scattered] == [[[w]] for w in wanted]


def test_gather_and_broadcast() -> None:
    for result in of.all_gather_into_tensor.meaning(RANKS, group_size=3):
        assert result[:, 0].tolist() == [1, 2, 3, 5, 5, 5, 0, -1, 7]
    assert [r[:, 0].tolist() for r in of.broadcast.meaning(RANKS, src=2)] == [[0, -1, 7]] * 3


def test_unequal_parts() -> None:
    sent = ((0, 1, 2), (3, 0, 0), (1, 1, 1))
    expected = ((0, 3, 1), (1, 0, 1), (2, 0, 1))
    results = of.all_to_all_single.meaning(RANKS, input_split_sizes=sent, output_split_sizes=expected)
    assert [r[:, 0].tolist() for r in results] == [[5, 5, 5, 0], [1, -1], [2, 3, 7]]
    with pytest.raises(
        ConstraintError, match=r"C2: rank 0 of the group expects \(3, 0, 1\) rows and is sent \(0, 3, 1\)"
    ):
        of.all_to_all_single.meaning(
            RANKS, input_split_sizes=sent, output_split_sizes=((3, 0, 1), (1, 0, 1), (2, 0, 1))
        )


def test_a_count_that_is_not_the_groups() -> None:
    with pytest.raises(ConstraintError, match="C1: group_size is 2, and the group has 3 ranks"):
        of.all_gather_into_tensor.meaning(RANKS, group_size=2)
    with pytest.raises(ConstraintError, match="C3: group_size is 2"):
        of.reduce_scatter_tensor.meaning(RANKS, reduce_op="sum", group_size=2)


def test_collectives_are_those_of_the_table() -> None:
    declared = {overload for entry in ATEN if entry.family is Family.COLLECTIVE for overload in entry.overloads}
    assert declared == {overload for name in NAMES for overload in overloads(name)}
    assert all(map(is_collective, declared))


def test_a_wait_meets_no_rank() -> None:
    assert not is_collective(f"{NAMESPACE}::{WAIT}")
    assert not is_collective("all_reduce")
