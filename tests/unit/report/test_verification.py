"""The error of a result: finite numbers are measured, everything else has to be the same."""

from __future__ import annotations

import numpy as np
import pytest

from spyre_mlir.report.verification import error_of

NAN, INF = float("nan"), float("inf")


def test_an_infinity_hides_no_error() -> None:
    assert error_of(np.array([INF, 3.0]), np.array([INF, 2.0])) == 0.5


@pytest.mark.parametrize("wanted", [[NAN, 1.0], [INF, 1.0], [-INF, 1.0]])
def test_what_is_not_finite_has_to_be_the_same(wanted: list[float]) -> None:
    assert error_of(np.array(wanted), np.array(wanted)) == 0.0
    assert error_of(np.array([1.0, 1.0]), np.array(wanted)) == INF
    assert error_of(np.array(wanted), np.array([1.0, 1.0])) == INF


def test_nothing_finite_is_no_error() -> None:
    assert error_of(np.array([NAN]), np.array([NAN])) == 0.0
    assert error_of(np.zeros(0), np.zeros(0)) == 0.0
