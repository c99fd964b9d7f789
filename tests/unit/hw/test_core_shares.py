"""Parts of the memory's rate that few cores reach: the published ones, and lines in the logarithm between them."""

from __future__ import annotations

from math import sqrt

import pytest

from spyre_mlir.hw.core_shares import reduction_share, stream_share
from spyre_mlir.hw.cost_parameters import CALIBRATED, PEAK, QUICK_STREAMS

COUNTS = (1, 2, 4, 8, 16, 32)


def test_measured_counts_have_their_published_shares() -> None:
    reductions, streams = (0.11, 0.22, 0.43, 0.54, 0.54, 1.0), (0.59, 0.68, 0.78, 0.87, 0.87, 1.0)
    for cores, reduction, stream in zip(COUNTS, reductions, streams, strict=True):
        assert reduction_share(cores, CALIBRATED) == pytest.approx(reduction), cores
        assert stream_share(cores, CALIBRATED) == pytest.approx(reduction), cores  # the same law, in this profile
        assert reduction_share(cores, QUICK_STREAMS) == pytest.approx(reduction), cores
        assert stream_share(cores, QUICK_STREAMS) == pytest.approx(stream), cores


def test_shares_between_measured_counts_are_linear_in_the_logarithm() -> None:
    assert reduction_share(3, CALIBRATED) == pytest.approx(0.22 + (0.43 - 0.22) * 0.5849625)  # log2(3) - 1
    assert reduction_share(12, CALIBRATED) == pytest.approx(0.54)
    assert reduction_share(24, CALIBRATED) == pytest.approx(0.54 + (1 - 0.54) * 0.5849625)
    assert stream_share(round(16 * sqrt(2)), QUICK_STREAMS) == pytest.approx(0.87 + 0.13 * 0.5235620)  # log2(23 / 16)


def test_all_cores_and_the_peak_lose_nothing() -> None:
    for share in (reduction_share, stream_share):
        assert share(32, CALIBRATED) == share(64, CALIBRATED) == 1
        assert [share(cores, PEAK) for cores in (1, 3, 16, 31)] == [1, 1, 1, 1]
