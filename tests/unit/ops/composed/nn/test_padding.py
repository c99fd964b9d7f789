"""Borders around tensors, against the modes of numpy.pad and numpy.take."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from spyre_mlir.errors import ConstraintError
from spyre_mlir.ops.composed.nn import padding
from tests.unit.ops.evaluation import budgets, calling, check_samples, defaults, made, result, same, types

X = np.arange(24.0).reshape(2, 3, 4) ** 2 - 30.0


def cut(x: np.ndarray, pairs: list[tuple[int, int]]) -> tuple[np.ndarray, list[tuple[int, int]]]:
    """What negative pairs leave, and the pairs without them."""
    kept = tuple(slice(max(0, -a), n + min(0, c)) for (a, c), n in zip(pairs, x.shape, strict=True))
    return x[kept], [(max(0, a), max(0, c)) for a, c in pairs]


def pairs_of(pad: tuple[int, ...]) -> list[tuple[int, int]]:
    """numpy's pairs, the first dimension first."""
    pairs = list(zip(pad[::2], pad[1::2], strict=True))
    return [(0, 0)] * (X.ndim - len(pairs)) + pairs[::-1]


PADS = [(1, 2), (0, 3), (2, 0, 1, 2), (0, 0, 0, 1, 1, 0), (-1, 2), (1, -2), (-1, -1, 1, -1)]


@pytest.mark.parametrize("pad", [*PADS, (0, 0, 5, 6)])
@pytest.mark.parametrize(("given", "value"), [({}, 0.0), ({"value": 0.5}, 0.5)])
def test_one_number(pad: tuple[int, ...], given: dict[str, Any], value: float) -> None:
    x, pairs = cut(X, pairs_of(pad))
    same(result("constant_pad_nd", X, pad=pad, **given), np.pad(x, pairs, constant_values=value))


@pytest.mark.parametrize("pad", [p for p in PADS if len(p) < 6] + [(3, 0), (0, 3), (0, 0, 2, 2)])
def test_a_mirror(pad: tuple[int, ...]) -> None:
    x, pairs = cut(X, pairs_of(pad))
    for n in (1, 2, 3):
        same(result(f"reflection_pad{n}d", X, padding=pad), np.pad(x, pairs, "reflect"))


@pytest.mark.parametrize("pad", [*PADS, (6, 5), (5, -4), (-4, 5), (-4, 1), (2, -4), (5, -4, -3, 2)])
def test_the_edge_repeated(pad: tuple[int, ...]) -> None:
    wanted = X
    for axis, (before, after) in enumerate(pairs_of(pad)):
        places = np.arange(X.shape[axis] + before + after) - before
        wanted = np.take(wanted, places, axis, mode="clip")
    for n in (1, 2, 3):
        same(result(f"replication_pad{n}d", X, padding=pad), wanted)


@pytest.mark.parametrize("pad", [p for p in PADS if len(p) < 6] + [(4, 0), (0, 4), (4, 4, 3, 3), (2, 0, 0, 3)])
def test_the_other_end(pad: tuple[int, ...]) -> None:
    x, pairs = cut(X, pairs_of(pad))
    same(result("_pad_circular", X, pad=pad), np.pad(x, pairs, "wrap"))


@pytest.mark.parametrize(
    ("overload", "given", "message"),
    [
        ("reflection_pad1d", {"padding": (4, 0)}, "C1: a border of 4 around 4 elements"),
        ("reflection_pad2d", {"padding": (0, 0, 0, 3)}, "C1: a border of 3 around 3 elements"),
        ("reflection_pad1d", {"padding": (-1, 3)}, "C1: a border of 3 around 3 elements"),
        ("_pad_circular", {"pad": (5, 1)}, "C1: a border of 5 around 4 elements"),
        ("_pad_circular", {"pad": (0, 1, 2, 4)}, "C1: a border of 4 around 3 elements"),
    ],
)
def test_a_border_wider_than_the_tensor_is_refused(overload: str, given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConstraintError, match=message):
        types(calling(overload, **given), X)


def test_no_border_is_no_operation() -> None:
    for overload in ("reflection_pad1d", "replication_pad1d"):
        assert made(calling(overload, padding=(0, 0)), X) == []
    for overload in ("constant_pad_nd", "_pad_circular"):
        assert made(calling(overload, pad=(0, 0)), X) == []


def test_declarations() -> None:
    check_samples(padding.__name__)
    assert budgets(padding.__name__) == {
        "constant_pad_nd": (1, True),  # the number is rounded to the format
        "reflection_pad": (0, False),
        "replication_pad": (0, False),
        "pad_circular": (0, False),
    }
    assert defaults(padding.__name__) == {("value", 0)}
