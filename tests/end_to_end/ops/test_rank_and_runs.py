"""Orderings, extremes, running folds and questions of truth where samples are too tame: ties, NaN, infinities, ints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from xdsl.dialects.builtin import TensorType

from spyre_mlir.dialects.aten_build import result_types
from spyre_mlir.dialects.tensors import ELEMENTS, TypedValue
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.machine.levels.aten import evaluate
from spyre_mlir.ops import ATEN
from spyre_mlir.ops.composed.reductions import cumulative, sorting
from spyre_mlir.ops.table import OpEntry

NAN, INF = float("nan"), float("inf")
TIES = np.array([[2, 7, 2, 7, 0, 7], [1, 1, 1, 1, 1, 1]])
WITH_NAN = np.array([[1.0, NAN, 3.0, NAN], [-INF, 2.0, INF, 2.0]])
INF_AND_NAN = np.array([[INF, NAN, -INF, INF], [-INF, NAN, 2.0, NAN]])
TRUTH = np.array([[True, False, True], [False, False, False]])


def entry_of(overload: str) -> OpEntry:
    found = ATEN.find(overload)
    assert found is not None
    return found


def ours(overload: str, *tensors: Any, **attributes: Any) -> list[NDArray[Any]]:
    entry = entry_of(overload)
    names = [p.name for p in entry.params if p.is_tensor]
    given = {p.name: p.default for p in entry.params} | dict(zip(names, tensors, strict=False)) | attributes
    return evaluate(entry, given)


def theirs(function: Callable[..., Any], *tensors: NDArray[Any], **attributes: Any) -> list[NDArray[Any]]:
    out = function(*(torch.from_numpy(np.array(t)) for t in tensors), **attributes)
    return [t.numpy() for t in ([out] if isinstance(out, torch.Tensor) else out)]


def same(got: list[NDArray[Any]], wanted: list[NDArray[Any]]) -> None:
    for one, other in zip(got, wanted, strict=True):
        assert one.dtype.kind == other.dtype.kind
        np.testing.assert_allclose(one.astype(np.float64), other.astype(np.float64), rtol=1e-12)


@pytest.mark.parametrize("values", [TIES, WITH_NAN, TRUTH], ids=["ties", "nan", "truth"])
@pytest.mark.parametrize("descending", [False, True])
def test_equal_elements_keep_their_order_and_nan_is_the_largest(values: NDArray[Any], descending: bool) -> None:
    got = ours("sort.stable", values, stable=True, dim=1, descending=descending)
    same(got, theirs(torch.sort, values, stable=True, dim=1, descending=descending))


@pytest.mark.parametrize("values", [TIES, WITH_NAN, INF_AND_NAN], ids=["ties", "nan", "infinity"])
@pytest.mark.parametrize("function", [torch.argmax, torch.argmin])
@pytest.mark.parametrize("dim", [None, 0, -1])
def test_the_first_of_equal_extremes_is_found_and_nan_wins(
    values: NDArray[Any], function: Callable[..., Any], dim: int | None
) -> None:
    same(ours(function.__name__, values, dim=dim), theirs(function, values, dim=dim))


@pytest.mark.parametrize("overload", ["max.dim", "min.dim"])
@pytest.mark.parametrize("values", [TIES, WITH_NAN, INF_AND_NAN, TRUTH], ids=["ties", "nan", "infinity", "truth"])
def test_extremes_come_with_their_positions(overload: str, values: NDArray[Any]) -> None:
    function = getattr(torch, overload.removesuffix(".dim"))
    same(ours(overload, values, dim=1), theirs(function, values, dim=1))


@pytest.mark.parametrize("values", [TIES, WITH_NAN, TRUTH], ids=["ties", "nan", "truth"])
@pytest.mark.parametrize("function", [torch.any, torch.all])
def test_what_is_not_a_number_is_true(values: NDArray[Any], function: Callable[..., Any]) -> None:
    same(ours(function.__name__, values), theirs(function, values))
    same(ours(f"{function.__name__}.dim", values, dim=(1,)), theirs(function, values, dim=1))


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin"])
@pytest.mark.parametrize("square", [cumulative.SQUARE, 0], ids=["square", "doubled"])
@pytest.mark.parametrize("values", [TIES, TIES.T.astype(np.float64)], ids=["integers", "floats"])
def test_running_folds_either_way(
    name: str, square: int, values: NDArray[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cumulative, "SQUARE", square)
    same(ours(name, values, dim=1), theirs(getattr(torch, name), values, dim=1))


@pytest.mark.parametrize("name", ["cummax", "cummin"])
@pytest.mark.parametrize("square", [cumulative.SQUARE, 0], ids=["square", "doubled"])
def test_what_is_not_a_number_stays_the_running_extreme(
    name: str, square: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cumulative, "SQUARE", square)
    values = np.array([[1.0, NAN, 3.0, NAN, 0.0], [NAN, INF, 1.0, -INF, 2.0], [-INF, 1.0, 1.0, INF, NAN]])
    same(ours(name, values, dim=1), theirs(getattr(torch, name), values, dim=1))


@pytest.mark.parametrize("square", [cumulative.SQUARE, 0], ids=["square", "doubled"])
def test_infinities_stay_behind_those_before_them(square: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cumulative, "SQUARE", square)
    values = np.array([[1.0, 2.0, INF, 3.0], [-INF, -INF, 1.0, NAN]])
    same(ours("cumsum", values, dim=1), theirs(torch.cumsum, values, dim=1))
    same(ours("logcumsumexp", values, dim=1), theirs(torch.logcumsumexp, values, dim=1))


@pytest.mark.parametrize("reduce", ["amax", "amin"])
def test_what_is_not_a_number_wins_where_it_goes_alone(reduce: str) -> None:
    self, index = np.zeros((1, 3)), np.array([[0, 1, 1, 0]])
    values = np.array([[1.0, NAN, 2.0, -INF]])
    given = {"dim": 1, "reduce": reduce, "include_self": False}
    wanted = torch.from_numpy(self).scatter_reduce(
        1, torch.from_numpy(index), torch.from_numpy(values), reduce, include_self=False
    )
    same(ours("scatter_reduce.two", self, index, values, **given), [wanted.numpy()])


def test_rows_of_minus_infinity() -> None:
    values = np.array([[-INF, -INF], [1.0, -INF], [INF, 0.0]])
    same(ours("logsumexp", values, dim=(1,)), theirs(torch.logsumexp, values, dim=1))
    same(ours("_safe_softmax", values[:2], dim=1), theirs(torch.ops.aten._safe_softmax, values[:2], dim=1))


def test_long_rows_are_ordered_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorting, "SQUARE", 2 * 7 * 7)
    values = np.random.default_rng(3).permutation(5 * 7).reshape(5, 7).astype(np.float64)
    same(ours("topk", values, k=3), theirs(torch.topk, values, k=3))


def test_a_few_of_many_are_picked_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorting, "MOST", 10)
    values = np.random.default_rng(3).permutation(5 * 7).reshape(5, 7).astype(np.float64)
    same(ours("topk", values, k=3, largest=False), theirs(torch.topk, values, k=3, largest=False))


def test_an_ordering_too_dear_for_the_device_is_refused() -> None:
    entry = entry_of("sort")
    bound = {"self": TypedValue(TensorType(ELEMENTS["f32"], [8, 32000])), "dim": -1, "descending": False}
    with pytest.raises(UnsupportedError, match="an ordering of 32000 elements"):
        result_types(entry, bound)


def test_counts_and_places() -> None:
    borders, values = np.array([1.0, 2.0, 2.0, 3.0]), np.array([0.5, 1.0, 2.0, 5.0, NAN, INF])
    for right in (False, True):
        same(
            ours("searchsorted.Tensor", borders, values, right=right),
            theirs(torch.searchsorted, borders, values, right=right),
        )
        same(
            ours("bucketize.Tensor", values, borders, right=right),
            theirs(torch.bucketize, values, borders, right=right),
        )
    finite = values[:4]
    same(ours("histc", finite, bins=4, min=0, max=2), theirs(torch.histc, finite, bins=4, min=0, max=2))
    same(ours("histc", np.full(3, 2.0), bins=4), theirs(torch.histc, np.full(3, 2.0), bins=4))


def test_the_middle_of_what_holds_a_nan_is_nan() -> None:
    same(ours("median.dim", WITH_NAN, dim=1), theirs(torch.median, WITH_NAN, dim=1))
    assert np.isnan(ours("median", WITH_NAN)[0])


def test_empty_folds_give_what_is_neutral() -> None:
    nothing = np.zeros((3, 0))
    same(ours("any.dim", nothing, dim=(1,)), theirs(torch.any, nothing, dim=1))
    same(ours("all.dim", nothing, dim=(1,)), theirs(torch.all, nothing, dim=1))
    same(ours("prod.dim_int", nothing, dim=(1,)), theirs(torch.prod, nothing, dim=1))
    same(ours("logsumexp", nothing, dim=(1,)), theirs(torch.logsumexp, nothing, dim=1))


def test_what_is_not_a_number_hides_no_frequent_element() -> None:
    values = np.array([[NAN, 2.0, INF, 2.0], [INF, NAN, INF, NAN]])
    assert ours("mode", values, dim=1)[0].tolist() == [2.0, INF]
