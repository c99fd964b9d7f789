"""The largest and the smallest element and where they are, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.ops.composed.reductions import extremes
from tests.unit.ops.evaluation import (
    INF,
    NAN,
    all_same,
    budgets,
    calling,
    check_samples,
    defaults,
    result,
    results,
    same,
    types,
)

X = np.array([[3.0, -1.0, 3.0, -1.0], [-INF, 2.0, INF, INF], [0.5, NAN, 9.0, NAN]])
WHOLE = np.array([[4, -7, 4], [-7, 0, 2]])
TRUTH = np.array([[False, True, True], [True, False, False]])
ENDS: dict[str, Any] = {"max": np.max, "min": np.min}
PLACES: dict[str, Any] = {"max": np.argmax, "min": np.argmin}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("x", [X, WHOLE, TRUTH], ids=["floats", "integers", "truth values"])
@pytest.mark.parametrize("keepdim", [True, False])
def test_along_a_dimension(end: str, x: np.ndarray, keepdim: bool) -> None:
    for dim in (0, 1, -1, -2):
        places = PLACES[end](x, dim, keepdims=keepdim)
        if x is not TRUTH:
            same(result(f"arg{end}", x, dim=dim, keepdim=keepdim), places)
        all_same(results(f"{end}.dim", x, dim=dim, keepdim=keepdim), [ENDS[end](x, dim, keepdims=keepdim), places])


@pytest.mark.parametrize("end", ENDS)
def test_among_all_truth_values(end: str) -> None:
    same(result(end, TRUTH), ENDS[end](TRUTH))


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("x", [X, X[:2], WHOLE])
def test_among_all_elements(end: str, x: np.ndarray) -> None:
    same(result(end, x), ENDS[end](x))
    same(result(f"arg{end}", x), PLACES[end](x))
    same(result(f"arg{end}", x, keepdim=True), PLACES[end](x, keepdims=True))


@pytest.mark.parametrize("end", ENDS)
def test_one_number_stands_at_zero(end: str) -> None:
    number = np.array(-4.0)
    same(result(f"arg{end}", number), 0)
    all_same(results(f"{end}.dim", number, dim=-1), [number, 0])


@pytest.mark.parametrize("end", ENDS)
def test_nothing_has_no_extreme_element(end: str) -> None:
    with pytest.raises(UnsupportedError, match=r"the position of an extreme element of a tensor of shape \(2, 0\)"):
        types(calling(f"arg{end}", dim=0), np.zeros((2, 0)))


@pytest.mark.parametrize("end", ENDS)
def test_places_are_integers(end: str) -> None:
    half = X.astype(np.float16)
    assert types(calling(f"{end}.dim", dim=0), half) == [((4,), "f16"), ((4,), "i64")]


def test_declarations() -> None:
    check_samples(extremes.__name__)
    names = ("argmax", "argmin", "max_of_all", "min_of_all", "max_along", "min_along")
    assert budgets(extremes.__name__) == dict.fromkeys(names, (0, False))
    assert defaults(extremes.__name__) == {("dim", None), ("keepdim", False)}


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_the_position_of_a_truth_value_is_refused_as_eager_refuses_it(name: str) -> None:
    with pytest.raises(RuntimeError, match="does not support bool"):
        getattr(torch, name)(torch.tensor([True, False]))
    with pytest.raises(UnsupportedError, match=f"{name} of truth values, which eager refuses"):
        result(name, TRUTH)
