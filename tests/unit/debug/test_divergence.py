"""Differences counted by hand: undefined elements, infinities, and errors relative to the largest value."""

import numpy as np
import pytest

from spyre_mlir.debug.divergence import worst_difference


@pytest.mark.parametrize(
    ("got", "expected", "error"),
    [
        ([1.0, 2.0], [1.0, 2.0], None),
        ([1.0, 2.0], [1.0, 4.0], 0.5),
        ([1.0, np.nan], [1.0, 4.0], np.inf),
        ([1.0, 7.0], [1.0, np.nan], None),
        ([np.inf, 1.0], [np.inf, 1.0], None),
        ([np.inf, 1.0], [2.0, 1.0], np.inf),
        ([0.25, 0.0], [0.0, 0.0], 0.25),
        ([], [], None),
    ],
)
def test_worst_difference(got: list[float], expected: list[float], error: float | None) -> None:
    found = worst_difference(np.array(got), np.array(expected), 1e-9)
    assert (None if found is None else found.error) == error
