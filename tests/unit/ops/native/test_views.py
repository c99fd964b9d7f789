"""Other readings of the same elements: the numbers against numpy, and the shapes of the types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from spyre_mlir.ops.native import views
from spyre_mlir.ops.table import Family
from tests.unit.ops.evaluation import calling, check_samples, defaults, entries_in, result, same, types

X = np.arange(24.0).reshape(2, 3, 4)
ONES = X.reshape(2, 1, 3, 1, 4)
CASES: list[tuple[str, np.ndarray, dict[str, Any], np.ndarray]] = [
    *((name, X, {"size": (4, -1, 2)}, X.reshape(4, 3, 2)) for name in ("view", "reshape", "_unsafe_view")),
    ("permute", X, {"dims": (2, 0, -2)}, X.transpose(2, 0, 1)),
    ("transpose.int", X, {"dim0": 0, "dim1": -1}, X.swapaxes(0, 2)),
    ("transpose.int", X, {"dim0": 1, "dim1": 0}, X.swapaxes(0, 1)),
    ("t", X[0], {}, X[0].T),
    ("t", X[0, 0], {}, X[0, 0]),
    ("t", np.array(3.0), {}, np.array(3.0)),
    ("unsqueeze", X, {"dim": 1}, X[:, None]),
    ("unsqueeze", X, {"dim": -1}, X[..., None]),
    ("squeeze.dim", ONES, {"dim": (1,)}, ONES[:, 0]),
    ("squeeze.dim", ONES, {"dim": (0,)}, ONES),
    ("squeeze.dims", ONES, {"dim": (-2, 1)}, X),
    ("squeeze", ONES, {}, X),
    ("expand", X[:, :1], {"size": (5, 2, 3, -1)}, np.broadcast_to(X[:, :1], (5, 2, 3, 4))),
    ("expand", X[:1], {"size": (2, 3, 4), "implicit": True}, np.broadcast_to(X[:1], (2, 3, 4))),
    ("select.int", X, {"dim": 1, "index": 2}, X[:, 2]),
    ("select.int", X, {"dim": -1, "index": -3}, X[..., 1]),
    ("slice.Tensor", X, {"dim": -1, "start": 1, "end": 4, "step": 2}, X[..., 1:4:2]),
    ("slice.Tensor", X, {"dim": 1, "start": -2}, X[:, -2:]),
    ("slice.Tensor", X, {"dim": 2, "end": -1}, X[..., :-1]),
    ("slice.Tensor", X, {"start": 1}, X[1:]),
    ("slice.Tensor", X, {"dim": 1, "start": None, "end": 9}, X),
    *((name, X, {}, X) for name in ("alias", "detach", "lift_fresh_copy")),
]


@pytest.mark.parametrize(("overload", "x", "given", "wanted"), CASES)
def test_views_are_those_of_numpy(overload: str, x: np.ndarray, given: dict[str, Any], wanted: np.ndarray) -> None:
    same(result(overload, x, **given), wanted)
    assert types(calling(overload, **given), x) == [(wanted.shape, "f32")]


def test_the_end_is_torchs() -> None:
    assert int(np.iinfo(np.int64).max) == views.TO_END


def test_declarations() -> None:
    check_samples(views.__name__)
    assert {e.family for e in entries_in(views.__name__)} == {Family.VIEW}
    wanted = {("dim", None), ("dim", 0), ("implicit", False), ("start", None), ("end", None), ("step", 1)}
    assert defaults(views.__name__) == wanted
