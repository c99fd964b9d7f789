"""Parts of tensors, cut out and put together: against numpy, and nothing is built where nothing changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from spyre_mlir.ops.helpers.slicing import (
    along,
    cut_to,
    joined,
    moved,
    padded,
    part,
    permuted,
    reshaped,
    side_by_side,
    taken,
    widened,
)
from tests.unit.ops.evaluation import made, run, same, types

X = np.arange(24.0).reshape(2, 3, 4) - 7.0
V = np.array([3.0, -1.0, 2.0])

CASES: dict[str, tuple[Callable[..., Any], Any, list[str]]] = {
    "a range": (lambda b, x: part(b, x, 2, 1, 3), X[..., 1:3], ["slice.Tensor"]),
    "a range of a negative dimension": (lambda b, x: part(b, x, -2, 0, 2), X[:, :2], ["slice.Tensor"]),
    "steps": (lambda b, x: part(b, x, 2, 0, 4, 3), X[..., ::3], ["slice.Tensor"]),
    "all but the first": (lambda b, x: part(b, x, 1, 1, 3), X[:, 1:], ["slice.Tensor"]),
    "everything": (lambda b, x: part(b, x, 1, 0, 3), X, []),
    "more than everything": (lambda b, x: part(b, x, 1, 0, 9), X, []),
    "a count": (lambda b, x: taken(b, x, 2, 1, 2), X[..., 1:3], ["slice.Tensor"]),
    "a count with steps": (lambda b, x: taken(b, x, 2, 0, 2, 2), X[..., 0:3:2], ["slice.Tensor"]),
    "the whole count": (lambda b, x: taken(b, x, 0, 0, 2), X, []),
    "cut": (lambda b, x: cut_to(b, x, (1, 9, 2), 1), X[:1, :, :2], ["slice.Tensor"] * 2),
    "cut to what it is": (lambda b, x: cut_to(b, x, (2, 1, 4), 1), X, []),
    "joined": (lambda b, x: joined(b, [x, -x], 1), np.concatenate([X, -X], 1), ["neg", "cat"]),
    "joined with nothing": (lambda b, x: joined(b, [part(b, x, 1, 0, 0), x], 1), X, ["slice.Tensor"]),
    "nothing joined": (
        lambda b, x: joined(b, [part(b, x, 1, 0, 0), part(b, x, 1, 3, 3)], 1),
        X[:, :0],
        ["slice.Tensor"] * 2,
    ),
    "side by side": (
        lambda b, x: side_by_side(b, [x, -x], 2),
        np.stack([X, -X], 2),
        ["neg", "unsqueeze", "unsqueeze", "cat"],
    ),
    "padded": (
        lambda b, x: padded(b, x, -1, 1, 2, 9.0),
        np.pad(X, ((0, 0), (0, 0), (1, 2)), constant_values=9.0),
        ["full", "expand", "full", "expand", "cat"],
    ),
    "padded with zeros": (
        lambda b, x: padded(b, x, 0, 0, 1),
        np.pad(X, ((0, 1), (0, 0), (0, 0))),
        ["full", "expand", "cat"],
    ),
    "padded and cut": (
        lambda b, x: padded(b, x, 1, -1, 1, 5.0),
        np.pad(X[:, 1:], ((0, 0), (0, 1), (0, 0)), constant_values=5.0),
        ["slice.Tensor", "full", "expand", "cat"],
    ),
    "cut behind": (lambda b, x: padded(b, x, 2, 0, -3), X[..., :1], ["slice.Tensor"]),
    "padded by nothing": (lambda b, x: padded(b, x, 2, 0, 0), X, []),
    "permuted": (lambda b, x: permuted(x, (2, 0, 1)), X.transpose(2, 0, 1), ["permute"]),
    "permuted to what it is": (lambda b, x: permuted(x, (0, 1, 2)), X, []),
    "moved": (lambda b, x: moved(x, 0, -1), np.moveaxis(X, 0, -1), ["permute"]),
    "moved to the front": (lambda b, x: moved(x, -1, 0), np.moveaxis(X, -1, 0), ["permute"]),
    "moved to where it is": (lambda b, x: moved(x, -2, 1), X, []),
    "reshaped": (lambda b, x: reshaped(x, (4, 6)), X.reshape(4, 6), ["view"]),
    "reshaped to what it is": (lambda b, x: reshaped(x, (2, 3, 4)), X, []),
    "widened": (lambda b, x: widened(x, (5, 2, 3, 4)), np.broadcast_to(X, (5, 2, 3, 4)), ["expand"]),
    "widened to what it is": (lambda b, x: widened(x, (2, 3, 4)), X, []),
}


@pytest.mark.parametrize("name", CASES)
def test_parts_are_those_of_numpy(name: str) -> None:
    body, wanted, ops = CASES[name]
    (got,) = run(body, X)
    same(got, wanted)
    assert made(body, X) == ops


@pytest.mark.parametrize(("dim", "shape"), [(0, (3, 1, 1)), (1, (3, 1)), (2, (3,)), (-1, (3,)), (-3, (3, 1, 1))])
def test_a_vector_runs_along_one_dimension(dim: int, shape: tuple[int, ...]) -> None:
    (got,) = run(lambda b, v: along(v, 3, dim), V)
    same(got, V.reshape(shape))


def test_a_border_has_the_element_type_of_the_tensor() -> None:
    assert types(lambda b, x: padded(b, x, 0, 1, 0, 2), np.zeros((1, 2), np.int32)) == [((2, 2), "i32")]
