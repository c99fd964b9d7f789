"""View methods on arrays, against numpy's functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from spyre_mlir.ops.array_views import ArrayView

X = np.arange(24).reshape(2, 3, 4)
ONES = np.arange(6).reshape(1, 2, 1, 3)
CASES: list[tuple[Any, Callable[[ArrayView], ArrayView], Any]] = [
    (X, lambda v: v.permute((2, 0, 1)), X.transpose(2, 0, 1)),
    (X, lambda v: v.transpose(0, -1), X.swapaxes(0, 2)),
    (X, lambda v: v.transpose(1, 2), X.swapaxes(1, 2)),
    (np.array(5), lambda v: v.transpose(0, -1), np.array(5)),
    (X, lambda v: v.unsqueeze(1), X[:, None]),
    (X, lambda v: v.unsqueeze(-1), X[..., None]),
    (ONES, lambda v: v.squeeze(), ONES[0, :, 0]),
    (ONES, lambda v: v.squeeze((0,)), ONES[0]),
    (ONES, lambda v: v.squeeze((-2, 1)), ONES[:, :, 0]),
    (ONES, lambda v: v.squeeze(()), ONES),
    (np.array(5), lambda v: v.squeeze((0,)), np.array(5)),
    (ONES, lambda v: v.expand((4, 2, 5, 3)), np.broadcast_to(ONES, (4, 2, 5, 3))),
    (ONES, lambda v: v.expand((7, -1, 2, -1, -1)), np.broadcast_to(ONES, (7, 1, 2, 1, 3))),
    (ONES, lambda v: v.expand((-1, 4, 2, 1, 3)), np.broadcast_to(ONES, (1, 4, 2, 1, 3))),
    (X, lambda v: v.select(1, 2), X[:, 2]),
    (X, lambda v: v.select(-1, -3), X[..., 1]),
    (X, lambda v: v.slice(1, 1, 3), X[:, 1:3]),
    (X, lambda v: v.slice(-1, 0, 4, 3), X[..., ::3]),
    (X, lambda v: v.reshape((4, -1)), X.reshape(4, 6)),
]


@pytest.mark.parametrize(("array", "change", "wanted"), CASES)
def test_views_read_what_numpy_reads(array: Any, change: Callable[[ArrayView], ArrayView], wanted: Any) -> None:
    got = change(ArrayView(array))
    assert got.shape == wanted.shape
    np.testing.assert_array_equal(got.array, wanted)


def test_an_expansion_keeps_the_dimensions_it_has() -> None:
    with pytest.raises(ValueError, match="zip"):
        ArrayView(X).expand((3, 4))
