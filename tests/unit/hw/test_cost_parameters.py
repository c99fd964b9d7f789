"""The cost model beside published measurements: `benchmarks/cost_model.py` says how far off it is."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

import numpy as np
import pytest

from spyre_mlir.hw.cost_parameters import CALIBRATED, LAWS, PEAK
from tests.paths import ROOT

SCRIPT = ROOT / "benchmarks" / "cost_model.py"
PAGE = ROOT / "docs" / "reference" / "cost-model.md"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("benchmark_cost_model", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


FEW_CORES = "softmax 1 MB"  # on one and four cores, where no law that is published fits


@pytest.mark.parametrize("law", ["calibrated", "quick-streams"])
def test_errors_and_order(script: ModuleType, law: str) -> None:
    points = [point for point in script.read() if point.group != FEW_CORES]
    errors = script.errors(points, LAWS[law])
    assert len(points) >= 206
    assert script.rms(errors) <= 0.30
    measured = [point.us for point in points]
    assert script.rank_correlation(measured, [us * (1 + e) for us, e in zip(measured, errors, strict=True)]) >= 0.9


def test_the_page_has_these_figures(script: ModuleType) -> None:
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    every = script.read()
    points = [point for point in every if point.group != FEW_CORES]
    errors = script.errors(points, CALIBRATED)
    assert f"the RMS error is {100 * script.rms(errors):.1f} %" in page
    assert f"against {len(every)} published" in page
    measured = [point.us for point in points]
    order = script.rank_correlation(measured, [us * (1 + e) for us, e in zip(measured, errors, strict=True)])
    assert f"the rank correlation {order:.3f}" in page
    for law in ("quick-streams", "partial-overlap"):
        assert f"{100 * script.rms(script.errors(points, LAWS[law])):.1f} % under `{law}`" in page
    for group in {point.group for point in points}:
        found = script.rms(errors[[point.group == group for point in points]])
        assert f" {max(round(100 * found), 1)} %" in page, group


def test_nothing_physical_is_faster_than_the_peak_profile(script: ModuleType) -> None:
    points = script.read()
    faster = [p for p in points if script.errors([p], PEAK)[0] > 0.05]
    # Only the softmax of 1 MB on one core, whose bytes would need 258 and 303 GB/s of a memory that has 204.8 ...
    assert [p for p in points if script.beyond_peak(p)] == [p for p in points if p.us in (32.51, 27.66)]
    # ... and what one core's vector unit cannot do in that time either.
    assert {p.group for p in faster} <= {FEW_CORES}


def test_rank_correlation_by_hand(script: ModuleType) -> None:
    assert script.rank_correlation([1, 2, 3, 4], [10, 20, 30, 40]) == pytest.approx(1)
    assert script.rank_correlation([1, 2, 3, 4], [4, 3, 2, 1]) == pytest.approx(-1)
    # Ranks 1 2 3 4 and 1 3 2 4: 1 - 6 * 2 / (4 * 15).
    assert script.rank_correlation([1, 2, 3, 4], [1, 3, 2, 4]) == pytest.approx(0.8)
    assert script.rms(np.array([0.3, -0.4])) == pytest.approx(0.3535534)


def test_a_wrong_parameter_shows(script: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    sys.argv = ["cost_model.py"]
    assert script.main() == 0
    printed = capsys.readouterr().out
    assert "hbm_gb_per_s" in printed and "batched matmul" in printed
