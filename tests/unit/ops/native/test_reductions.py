"""Sums and extremes over dimensions, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from spyre_mlir.ops.hardware_functions import FUNCTIONS
from spyre_mlir.ops.native import reductions
from tests.unit.ops.evaluation import (
    NAN,
    calling,
    check_samples,
    defaults,
    entries_in,
    made,
    result,
    run,
    same,
    taking_apart,
    types,
)

X = np.arange(24.0).reshape(2, 3, 4) * 5 % 7 - 3.0
FOLDS: dict[str, Any] = {"sum.dim_IntList": np.sum, "amax": np.max, "amin": np.min}
TRUTH = np.array([[True, False], [False, False], [True, True]])


@pytest.mark.parametrize("overload", FOLDS)
@pytest.mark.parametrize("dim", [(-1,), (0,), (1, -3), (0, 1, 2), ()])
@pytest.mark.parametrize("keepdim", [False, True])
def test_folds(overload: str, dim: tuple[int, ...], keepdim: bool) -> None:
    wanted = FOLDS[overload](X, dim or None, keepdims=keepdim)
    same(result(overload, X, dim=dim, keepdim=keepdim), wanted)
    assert types(calling(overload, dim=dim, keepdim=keepdim), X) == [(wanted.shape, "f32")]


@pytest.mark.parametrize("overload", FOLDS)
def test_all_dimensions_are_folded_and_dropped_unless_said(overload: str) -> None:
    same(result(overload, X), FOLDS[overload](X))
    same(result(overload, np.array(-2.0), dim=(0,)), -2.0)


@pytest.mark.parametrize("overload", FOLDS)
def test_what_is_not_a_number_wins(overload: str) -> None:
    same(result(overload, np.array([[1.0, NAN], [2.0, -3.0]]), dim=(1,)), [NAN, FOLDS[overload]([2.0, -3.0])])


@pytest.mark.parametrize("overload", ["amax", "amin"])
@pytest.mark.parametrize(("dim", "keepdim"), [((1,), False), ((0,), True), ((), False)])
def test_truth_values_are_folded_as_numbers(overload: str, dim: tuple[int, ...], keepdim: bool) -> None:
    body = taking_apart(overload, dim=dim, keepdim=keepdim)
    same(run(body, TRUTH)[0], FOLDS[overload](TRUTH, dim or None, keepdims=keepdim))
    assert made(body, TRUTH) == ["_to_copy", overload, "ne.Scalar"]
    assert run(body, X) == []


def test_declarations() -> None:
    check_samples(reductions.__name__)
    entries = {e.name: e for e in entries_in(reductions.__name__)}
    assert {n: (e.opfunc, e.ulps) for n, e in entries.items()} == {
        "sum": ("sum", 8),
        "amax": ("max", 1),
        "amin": ("min", 1),
    }
    for entry in entries.values():
        function = FUNCTIONS[str(entry.opfunc)]
        assert (entry.combine, entry.fp32) == (function.combine, "FP32" in function.formats)
    assert defaults(reductions.__name__) == {("dim", ()), ("dim", None), ("keepdim", False), ("dtype", None)}
