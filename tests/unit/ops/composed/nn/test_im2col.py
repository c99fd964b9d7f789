"""Windows laid out as columns and added up again, against loops over places and taps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from spyre_mlir.errors import ConstraintError
from tests.unit.ops.cases import Array, agree, budgets, check_samples, result

MODULE = "spyre_mlir.ops.composed.nn.im2col"

# input, kernel, dilation, padding, stride
CASES: list[tuple[Any, ...]] = [
    ((2, 3, 5, 4), (2, 2), (1, 1), (0, 0), (1, 1)),
    ((2, 2, 7, 6), (3, 2), (1, 2), (1, 0), (2, 1)),
    ((1, 2, 5, 8), (2, 3), (3, 1), (0, 2), (1, 3)),
    ((3, 5, 6), (2, 1), (2, 2), (2, 1), (1, 2)),
]


def windows(shape: Any, kernel: Any, gaps: Any, padding: Any, stride: Any) -> tuple[Any, list[Any]]:
    """The padded extents, and per place the rows and columns that its taps meet."""
    padded = [e + 2 * p for e, p in zip(shape[-2:], padding, strict=True)]
    places = [range(0, e - d * (k - 1), s) for e, k, d, s in zip(padded, kernel, gaps, stride, strict=True)]
    taps = [[d * n for n in range(k)] for k, d in zip(kernel, gaps, strict=True)]
    return padded, [np.ix_([i + r for r in taps[0]], [j + c for c in taps[1]]) for i in places[0] for j in places[1]]


def facts(kernel: Any, gaps: Any, padding: Any, stride: Any) -> dict[str, Any]:
    return {"kernel_size": kernel, "dilation": gaps, "padding": padding, "stride": stride}


def filled(*shape: int) -> Array:
    return np.arange(1.0, 1 + np.prod(shape)).reshape(shape)


@pytest.mark.parametrize(("shape", "kernel", "gaps", "padding", "stride"), CASES)
def test_every_place_has_a_column_of_what_its_window_meets(
    shape: Any, kernel: Any, gaps: Any, padding: Any, stride: Any
) -> None:
    x = filled(*shape)
    padded = np.pad(x, [(0, 0)] * (x.ndim - 2) + [(p, p) for p in padding])
    met = windows(shape, kernel, gaps, padding, stride)[1]
    columns = [padded[(..., *at)].reshape(*x.shape[:-3], -1) for at in met]
    agree(result("im2col", x, **facts(kernel, gaps, padding, stride)), np.stack(columns, -1))


@pytest.mark.parametrize(("shape", "kernel", "gaps", "padding", "stride"), CASES)
def test_every_column_is_added_where_its_window_was(
    shape: Any, kernel: Any, gaps: Any, padding: Any, stride: Any
) -> None:
    padded, met = windows(shape, kernel, gaps, padding, stride)
    lead = shape[:-3]
    x = filled(*lead, shape[-3] * kernel[0] * kernel[1], len(met))
    wanted = np.zeros((*shape[:-2], *padded))
    for n, at in enumerate(met):
        wanted[(..., *at)] += x[..., n].reshape(*lead, shape[-3], *kernel)
    wanted = wanted[..., padding[0] : padded[0] - padding[0], padding[1] : padded[1] - padding[1]]
    agree(result("col2im", x, output_size=shape[-2:], **facts(kernel, gaps, padding, stride)), wanted)


def test_one_number_stands_for_both_dimensions() -> None:
    x = filled(1, 2, 5, 5)
    for one in (facts((2,), (2,), (1,), (2,)),):
        both = {name: value * 2 for name, value in one.items()}
        columns = result("im2col", x, **one)
        agree(columns, result("im2col", x, **both))
        assert columns.shape == (1, 8, 9)
        agree(result("col2im", columns, output_size=(5,), **one), result("col2im", columns, output_size=(5, 5), **both))


def test_as_many_columns_as_places_are_needed() -> None:
    with pytest.raises(ConstraintError, match="C1: 5 columns for 6 places"):
        result("col2im", filled(8, 5), output_size=(3, 4), **facts((2, 2), (1, 1), (0, 0), (1, 1)))


def test_errors_that_are_allowed() -> None:
    wanted = {"im2col": (0, False), "col2im": (16, False)}
    assert budgets(MODULE) == wanted


def test_samples_fit() -> None:
    check_samples(MODULE)
