"""Orders of long rows in blocks, against numpy's stable sort."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from spyre_mlir.ops.composed.reductions import long_orders, sorting
from spyre_mlir.ops.composed.reductions.long_orders import first_of_blocks, ordered
from spyre_mlir.ops.helpers import placing
from tests.unit.ops.evaluation import INF, NAN, all_same, made, results, run

SPECIAL = [NAN, INF, -INF, INF, NAN, -INF, NAN, INF]
KINDS = ["float16", "float64", "int64"]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a few elements, so that rows of some dozens have all that long ones have."""
    for name, number in (("BLOCK", 12), ("DIGIT", 4), ("PART", 8), ("AT_ONCE", 4 * 8**2)):
        if hasattr(placing, name):
            monkeypatch.setattr(placing, name, number)
        monkeypatch.setattr(long_orders, name, number)


def rows(kind: str, extent: int, seed: int = 3) -> np.ndarray:
    """Two rows with many equal elements, NaN and infinities among floats in all blocks."""
    rng = np.random.default_rng(seed)
    x = rng.integers(-9, 9, (2, extent)).astype(kind)
    if kind != "int64":
        for row in x:
            row[rng.permutation(extent)[: len(SPECIAL)]] = SPECIAL
    return x


def wanted(x: np.ndarray, descending: bool, first: int, count: int) -> list[np.ndarray]:
    """The elements of some ranks and where they stood: NaN is the largest, and equal elements keep their order."""
    wide = x.astype(np.float64)
    key = np.where(np.isnan(wide), 1e6, np.clip(wide, -1e5, 1e5))
    where = np.argsort(-key if descending else key, axis=1, kind="stable")[:, first : first + count]
    return [np.take_along_axis(x, where, 1), where]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize(("extent", "first", "count"), [(12, 0, 12), (48, 0, 48), (41, 0, 41), (41, 7, 3), (37, 30, 6)])
def test_long_rows_are_ordered(kind: str, descending: bool, extent: int, first: int, count: int) -> None:
    x = rows(kind, extent)
    got = run(lambda b, x: ordered(b, x, descending=descending, first=first, count=count), x)
    all_same(got, wanted(x, descending, first, count))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize(("extent", "count"), [(16, 1), (61, 3), (160, 4), (157, 2)])
def test_the_first_are_among_those_of_blocks(kind: str, descending: bool, extent: int, count: int) -> None:
    x = rows(kind, extent)
    got = run(lambda b, x: first_of_blocks(b, x, descending=descending, count=count), x)
    all_same(got, wanted(x, descending, 0, count))


def test_elements_in_half_precision_go_to_their_places_by_a_product() -> None:
    def order(b: Any, x: Any) -> Any:
        return ordered(b, x, descending=True, first=0, count=48)

    assert made(order, rows("float16", 48)).count("matmul") == 1
    assert made(order, rows("float64", 48)).count("matmul") == 1  # places alone


def test_long_rows_along_any_dimension(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (sorting, long_orders):
        monkeypatch.setattr(module, "BLOCK", 12)
        monkeypatch.setattr(module, "PART", 8)
    monkeypatch.setattr(sorting, "LONG", 0)
    monkeypatch.setattr(sorting, "SQUARE", 0)
    monkeypatch.setattr(sorting, "AT_ONCE", 30 * 12)
    x = np.stack([rows("float64", 30, seed) for seed in (1, 2, 3)])
    lines = np.moveaxis(x, 2, 1).copy()  # [3, 30, 2]
    values = np.sort(np.moveaxis(lines, 1, 2), axis=2)
    np.testing.assert_array_equal(np.moveaxis(results("sort", lines, dim=1)[0], 1, 2), values)
    np.testing.assert_array_equal(results("topk", x, k=2, largest=False)[0], values[..., :2])
    np.testing.assert_array_equal(results("kthvalue", x, k=17)[0], values[..., 16])
    truth = x[0] > 0
    np.testing.assert_array_equal(results("sort", truth)[0], np.sort(truth, axis=1))
