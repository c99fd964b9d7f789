"""Results of bytes that nobody wrote: padding that is carried along, and padding that enters a result."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor, Dim, OpClass, Operand
from spyre_mlir.errors import FaultKind, MachineFault
from spyre_mlir.machine.faults import FaultLog
from spyre_mlir.machine.hardware_functions import Pointwise
from spyre_mlir.machine.memory.exact import ExactMemory
from spyre_mlir.machine.memory.operand_views import ByteAccess, OperandLayout, TrackedArray
from spyre_mlir.machine.superdsc.poison import (
    contracted_written,
    folded_written,
    pointwise_written,
    require_lane_zero,
)

DL16 = "SEN169_FP16"
LOG = FaultLog()
A, B, C = 0, 1 << 20, 1 << 21


def rows(base: int) -> Operand:
    """(3, 128), columns in the stick."""
    return Operand(("mb", "out"), (3, 128), "out", DL16, (str(base),))


def sparse(base: int) -> Operand:
    return Operand(("mb",), (3,), None, DL16, (str(base),))


def view(*operands: Operand, kind: OpClass = OpClass.POINTWISE) -> Descriptor:
    return Descriptor(0, "neg", "sfp", kind, (Dim("mb", 3), Dim("out", 128)), operands)


def access(of: Descriptor, index: int) -> ByteAccess:
    return OperandLayout(of, index, ExactMemory()).core(0)


def written(*missing: tuple[int, int], shape: tuple[int, int] = (3, 128)) -> np.ndarray:
    mask = np.ones(shape, np.bool_)
    for at in missing:
        mask[at] = False
    return mask


def tensor(mask: Any) -> TrackedArray:
    return TrackedArray(np.zeros((3, 128)), mask)


# --- the first lane of a stick


def lane_zero(mask: Any, operand: Operand | None = None) -> None:
    of = view(operand or rows(A), rows(B))
    require_lane_zero(of, 0, access(of, 0), tensor(mask), LOG)


def test_lanes_behind_the_first_may_be_unwritten() -> None:
    lane_zero(None)
    lane_zero(written())
    lane_zero(written((0, 1), (1, 63), (2, 65), (2, 127)))


def test_the_first_lane_of_each_stick_is_written() -> None:
    """The second sticks lie behind the first ones of all three rows."""
    with pytest.raises(MachineFault, match="2 sticks were never written in lane 0") as caught:
        lane_zero(written((2, 64), (2, 0), (1, 1)))
    assert caught.value.kind == FaultKind.UNINITIALISED_READ
    assert (caught.value.place.tensor, caught.value.place.low) == ("Tensor0", 2 * 128)
    assert "fill its padding" in str(caught.value)
    with pytest.raises(MachineFault, match="1 sticks") as caught:
        lane_zero(written((1, 64)))
    assert caught.value.place.low == 3 * 128 + 128


def test_each_stick_of_a_sparse_operand_is_written() -> None:
    of = view(sparse(A), rows(B))
    require_lane_zero(of, 0, access(of, 0), TrackedArray(np.zeros((3, 1)), np.ones((3, 1), np.bool_)), LOG)
    with pytest.raises(MachineFault, match="1 sticks") as caught:
        require_lane_zero(of, 0, access(of, 0), TrackedArray(np.zeros((3, 1)), written((1, 0), shape=(3, 1))), LOG)
    assert caught.value.place.low == 128


def test_a_fault_that_is_only_kept_lets_the_operation_go_on() -> None:
    log, of = FaultLog("collect"), view(rows(A), rows(B))
    require_lane_zero(of, 0, access(of, 0), tensor(written((0, 0))), log)
    assert [met.kind for met in log.faults] == [FaultKind.UNINITIALISED_READ]


# --- element by element


SUM, SELECT = Pointwise(lambda a, b: a + b), Pointwise(np.where, selects=True)


def test_a_result_has_a_value_where_all_it_was_made_of_has() -> None:
    one, other = (
        TrackedArray(np.zeros(3), np.asarray([True, False, True])),
        TrackedArray(np.zeros(3), np.asarray([True, True, False])),
    )
    known = TrackedArray(np.zeros(3))
    assert pointwise_written(SUM, [known, known]) is None
    found = pointwise_written(SUM, [one, known, other])
    assert found is not None
    assert found.tolist() == [True, False, False]


def test_a_choice_looks_only_at_what_it_picks() -> None:
    choice = TrackedArray(np.asarray([1.0, 0.0, 1.0, 0.0]))
    first = TrackedArray(np.zeros(4), np.asarray([True, False, False, True]))
    second = TrackedArray(np.zeros(4), np.asarray([False, True, True, False]))
    found = pointwise_written(SELECT, [choice, first, second])
    assert found is not None
    assert found.tolist() == [True, True, False, False]
    unsure = TrackedArray(choice.values, np.asarray([False, True, True, True]))
    found = pointwise_written(SELECT, [unsure, first, TrackedArray(np.zeros(4))])
    assert found is not None
    assert found.tolist() == [False, True, False, True]


# --- folds


def folded(mask: Any, axes: tuple[int, ...], output: Operand) -> Any:
    of = view(rows(A), output, kind=OpClass.REDUCTION)
    return folded_written(of, tensor(mask), axes, access(of, 0), LOG)


def test_a_fold_of_nothing_but_padding_is_padding() -> None:
    assert folded(None, (1,), sparse(C)) is None
    mask = written()
    mask[1] = False
    assert folded(mask, (1,), sparse(C)).tolist() == [[True], [False], [True]]


def test_padding_that_enters_a_fold_is_a_fault() -> None:
    with pytest.raises(MachineFault, match="2 elements that were never written enter a reduction") as caught:
        folded(written((1, 70), (2, 3)), (1,), sparse(C))
    assert caught.value.kind == FaultKind.UNINITIALISED_READ
    assert caught.value.place.low == 3 * 128 + 128 + 2 * 6  # row 1 of the second sticks, lane 6
    assert "neutral value" in str(caught.value)


def test_padding_may_enter_a_fold_that_goes_to_a_padding_lane() -> None:
    """The columns stay in the stick: lanes 0 and 64 of the result are data, the others may be padding."""
    columns = Operand(("out",), (128,), "out", DL16, (str(C),))
    found = folded(written((1, 70), (2, 3)), (0,), columns)
    assert np.flatnonzero(~found).tolist() == [3, 70]
    for column in (0, 64):
        with pytest.raises(MachineFault, match="1 elements that were never written"):
            folded(written((1, column), (0, 70)), (0,), columns)


# --- sums of products


def contracted(left: Any, right: Any) -> Any:
    """(3, 64) by (64, 128): k is the last dim."""
    dims = (Dim("mb", 3), Dim("out", 128), Dim("in", 64))
    operands = (
        Operand(("mb", "in"), (3, 64), "in", DL16, (str(A),)),
        Operand(("in", "out"), (64, 128), "out", DL16, (str(B),)),
        rows(C),
    )
    of = Descriptor(0, "batchmatmul", "pt", OpClass.MATMUL, dims, operands)
    inputs = [TrackedArray(np.zeros((3, 1, 64)), left), TrackedArray(np.zeros((1, 128, 64)), right)]
    return contracted_written(of, inputs, [2], [access(of, index) for index in range(3)], LOG)


def test_a_product_has_a_value_where_a_row_and_a_column_have() -> None:
    assert contracted(None, None) is None
    left, right = np.ones((3, 1, 64), np.bool_), np.ones((1, 128, 64), np.bool_)
    left[1], right[0, 100] = False, False
    row, column = np.indices((3, 128))
    assert np.array_equal(contracted(left, None)[..., 0], row != 1)
    assert np.array_equal(contracted(None, right)[..., 0], column != 100)
    assert np.array_equal(contracted(left, right)[..., 0], (row != 1) & (column != 100))


def test_padding_that_enters_a_product_is_a_fault_of_its_operand() -> None:
    left, right = np.ones((3, 1, 64), np.bool_), np.ones((1, 128, 64), np.bool_)
    left[1, 0, 5] = False
    right[0, 64, 5] = False
    with pytest.raises(MachineFault, match="1 elements that were never written") as caught:
        contracted(left, None)
    assert (caught.value.place.tensor, caught.value.place.low) == ("Tensor0", 128 + 2 * 5)
    with pytest.raises(MachineFault, match="1 elements that were never written") as caught:
        contracted(None, right)
    assert (caught.value.place.tensor, caught.value.place.low) == ("Tensor1", B + 64 * 128 + 5 * 128)
    right[0, 64, 5], right[0, 65, 5] = True, False  # a lane that may be padding
    assert np.flatnonzero(~contracted(None, right)[0]).tolist() == [65]
