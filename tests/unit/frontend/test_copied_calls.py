"""Calls of operators that write to their arguments, on copies."""

from __future__ import annotations

import pytest
import torch

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend.copied_calls import on_copies, written
from spyre_mlir.frontend.spelled_calls import RealAt, spelled

X, Y = torch.tensor([1.0, 2.0]), torch.tensor([5.0, 7.0])


def test_results_come_before_what_is_written_and_arguments_stay() -> None:
    """`frexp.Tensor_out` writes to both of its results, and returns them; they come twice."""
    text = spelled({"self": RealAt(0), "mantissa": RealAt(1), "exponent": RealAt(2)})
    given = [torch.tensor([8.0]), torch.zeros(1), torch.zeros(1, dtype=torch.int32)]
    assert [part.tolist() for part in on_copies(given, "aten.frexp.Tensor_out", str(text))] == [[0.5], [4]] * 2
    assert given[1].item() == 0


def test_a_tensor_that_is_given_twice_is_one_copy() -> None:
    text = spelled({"self": RealAt(0), "other": RealAt(0)})
    assert [part.tolist() for part in on_copies([X], "aten.add_.Tensor", str(text))] == [[2.0, 4.0]] * 2
    assert X.tolist() == [1.0, 2.0]


def test_lists_are_written_item_by_item() -> None:
    add = torch.ops.aten._foreach_add_.Scalar
    assert list(written(add, {"self": [X, Y], "scalar": 1})) == [X, Y]


def test_an_operator_that_nothing_has_registered_is_named() -> None:
    with pytest.raises(UnsupportedError, match=r"the host has no operator nobody\.here\.default"):
        on_copies([X], "nobody.here.default", "{}")
