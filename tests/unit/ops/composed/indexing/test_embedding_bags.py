"""Rows of a table folded bag by bag, against bags filled by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.ops.composed.indexing.embedding_bags import MAX, MEAN, SUM
from tests.unit.ops.cases import agree, budgets, check_samples, entry_of, results, results_of_body

MODULE = "spyre_mlir.ops.composed.indexing.embedding_bags"

WEIGHT = np.array([[1.0, -2.0], [3.0, 4.0], [-5.0, 6.0], [7.0, 0.5]])
INDICES = np.array([1, 2, 3, 3, 0])
OFFSETS = np.array([0, 2, 2, 4])  # bags of rows 1 and 2, of none, of row 3 twice, and of row 0
BAGS = [0, 0, 2, 2, 3]
FOLDED = {
    SUM: [[-2.0, 10.0], [0.0, 0.0], [14.0, 1.0], [1.0, -2.0]],
    MEAN: [[-1.0, 5.0], [0.0, 0.0], [7.0, 0.5], [1.0, -2.0]],
    MAX: [[3.0, 6.0], [0.0, 0.0], [7.0, 0.5], [1.0, -2.0]],
}
LARGEST = [[1, 2], [0, 0], [3, 3], [0, 0]]


def bags(*tensors: Any, **facts: Any) -> list[Any]:
    return results("_embedding_bag", *tensors, **facts)


@pytest.mark.parametrize("mode", FOLDED)
def test_bags(mode: int) -> None:
    out, bag_of, sizes, largest = bags(WEIGHT, INDICES, OFFSETS, mode=mode)
    agree(out, FOLDED[mode])
    # Torch's own sum needs neither, so it does not count.
    agree(bag_of, np.array(BAGS if mode != SUM else [], np.int64))
    agree(sizes, [0, 0, 0, 0] if mode == SUM else [2, 0, 2, 1])
    agree(largest, LARGEST if mode == MAX else sizes)


@pytest.mark.parametrize("mode", FOLDED)
def test_the_padding_row_counts_in_no_bag(mode: int) -> None:
    out, bag_of, sizes, largest = bags(WEIGHT, INDICES, OFFSETS, mode=mode, padding_idx=3)
    agree(out, [*FOLDED[mode][:2], [0.0, 0.0], FOLDED[mode][3]])
    agree(bag_of, BAGS)
    agree(sizes, [0, 0, 0, 0] if mode == SUM else [2, 0, 0, 1])
    agree(largest, [*LARGEST[:2], [0, 0], LARGEST[3]] if mode == MAX else sizes)


def test_row_0_may_be_the_padding() -> None:
    out, _, sizes, _ = bags(WEIGHT, INDICES, OFFSETS, mode=MEAN, padding_idx=0)
    agree(out, [*FOLDED[MEAN][:3], [0.0, 0.0]])
    agree(sizes, [2, 0, 2, 0])
    out, bag_of, *_ = bags(WEIGHT, INDICES, OFFSETS, padding_idx=0)
    agree(out, [*FOLDED[SUM][:3], [0.0, 0.0]])
    agree(bag_of, BAGS)


def test_rows_are_summed_and_none_is_padding_unless_told() -> None:
    agree(bags(WEIGHT, INDICES, OFFSETS)[0], FOLDED[SUM])
    defaults = {p.name: p.default for p in entry_of("_embedding_bag").params if not p.is_tensor}
    flags = dict.fromkeys(("scale_grad_by_freq", "sparse", "include_last_offset"), False)
    assert defaults == flags | {"mode": SUM, "padding_idx": -1}  # as torch declares them


def test_rows_are_weighted_before_they_are_added() -> None:
    weights = np.array([2.0, -1.0, 0.5, 1.0, 3.0])
    agree(bags(WEIGHT, INDICES, OFFSETS, weights)[0], [[11.0, 2.0], [0.0, 0.0], [10.5, 0.75], [3.0, -6.0]])


def test_the_last_offset_may_be_the_end() -> None:
    out, bag_of, *_ = bags(WEIGHT, INDICES, np.array([*OFFSETS, 5]), mode=MEAN, include_last_offset=True)
    agree(out, FOLDED[MEAN])
    agree(bag_of, BAGS)


@pytest.mark.parametrize(("element", "counted"), [("f16", 0), ("f32", 0), ("bf16", 5), ("f64", 5)])
def test_bags_of_indices_are_left_out_where_torch_has_its_own_sum(element: str, counted: int) -> None:
    def body(b: Any, weight: Any, *rest: Any) -> Any:
        return b.call_all("_embedding_bag_forward_only", b.cast(weight, element), *rest)

    out, bag_of, *_ = results_of_body(body, WEIGHT, INDICES, OFFSETS)
    agree(out, FOLDED[SUM])
    agree(bag_of, np.array(BAGS[:counted], np.int64))


def test_the_largest_of_weighted_rows_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="the largest of weighted rows\n  try: use mode sum"):
        bags(WEIGHT, INDICES, OFFSETS, np.ones(5), mode=MAX)


def test_errors_that_are_allowed() -> None:
    assert budgets(MODULE) == {"embedding_bag": (16, False)}


def test_samples_fit() -> None:
    check_samples(MODULE)
