"""How robust plans are: which settings are tried, when the planner need not run, and the page of results."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from spyre_mlir.hw.cost import CostKind, Traffic, Work, total_us
from spyre_mlir.hw.cost_parameters import CALIBRATED, CostParameters, names
from tests.paths import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import ranking_page


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The benchmark, which is in no package."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import ranking  # pyright: ignore[reportMissingImports]

    return ranking


def test_settings_are_every_uncertain_number_both_laws_and_three_overheads(script: ModuleType) -> None:
    found = [s for base in script.bases() for s in script.settings(base)]
    assert len(script.bases()) == 2 * 3
    assert len(found) == 6 * 2 * (len(names()) - 1)  # none is certain, and the overhead is swept already
    half = next(s for s in found if s.number == "hbm_gb_per_s" and s.factor == 0.5 and s.base.overhead_us == 5)
    assert (half.parameters.hbm_gb_per_s, half.parameters.kernel_fixed_us) == (75, 5)


def kernel(**changes: Any) -> Work:
    """A function of 1 MB in device memory."""
    operands = (Traffic(bytes=2**20, needed=2**20, per_core=2**15), Traffic(bytes=2**20, needed=2**20, per_core=2**15))
    return Work(kind=CostKind.POINTWISE, cores=32, elements=2**19, operands=operands, **changes)


def test_numbers_that_a_price_needs_are_noticed(script: ModuleType) -> None:
    with script.numbers_read() as found:
        total_us(kernel(), CALIBRATED)
    assert {"hbm_gb_per_s", "sfu_elements_per_ns_per_core", "kernel_fixed_us"} <= found
    assert found.isdisjoint({"pe_mac_per_ns_per_core", "stream_share_of_8_to_16_cores", "hbm_multicast_exponent"})
    before = set(found)
    assert CALIBRATED.reduction_rows > 0 and found == before  # nothing is noticed afterwards


def test_more_of_a_loss_and_less_of_a_rate_is_slower(script: ModuleType) -> None:
    base = script.bases()[0]
    for setting in script.settings(base):
        for work in (kernel(), kernel(trips=4, iterations=4)):
            before, after = total_us(work, base.parameters), total_us(work, setting.parameters)
            assert after >= before if script.slows(setting) else after <= before, setting


def test_a_plan_survives_if_no_known_one_is_clearly_quicker(script: ModuleType) -> None:
    workload = {"name": "softmax", "kind": "softmax", "sizes": [64, 256]}
    found = script.ranked(workload)
    assert found.settings == len(script.bases()) * len(script.settings(script.bases()[0]))
    assert found.entering < found.settings
    assert found.within == found.settings and found.breaks == {}
    known = script._Known(script.Planner(workload))
    slow = script.Plan(((kernel(trips=1000), 1),), 0)
    known.chosen = slow
    assert script._ranking("slow", known, 0.0).within == 0
    assert known.ratio(CostParameters()) > 100


def test_results_are_kept_in_the_order_of_the_workloads(script: ModuleType, tmp_path: Path) -> None:
    names_ = [w["name"] for w in script.read()[:2]]
    made = [
        script.Ranking(
            workload=name, settings=4, entering=2, within=4, entering_within=2, by_base={}, breaks={}, unchanged={},
            worst=(1.0, ""), plans=1, runs=1, seconds=0.0,
        )
        for name in names_
    ]  # fmt: skip
    for one in reversed(made):
        script.save(tmp_path / "r.json", one)
    assert [r["workload"] for r in script.load(tmp_path / "r.json")] == names_


def test_the_page_has_a_row_per_workload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bases = {f"{law}, {us} us": part for law in ("a", "b") for us, part in ((0, 1.0), (1, 0.5), (5, 0.0))}
    one = {
        "workload": "w", "settings": 8, "entering": 4, "within": 6, "entering_within": 3, "by_base": bases,
        "breaks": {"hbm_gb_per_s": 2}, "worst": [1.5, "hbm_gb_per_s x 0.5, a, 5 us"],
    }  # fmt: skip
    file = tmp_path / "ranking.json"
    file.write_text(json.dumps([one, one | {"workload": "v", "within": 8, "breaks": {}, "worst": [1.0, "any"]}]))
    monkeypatch.setattr(ranking_page, "RESULTS", file)
    page = ranking_page.ranking_page()
    assert "1 of 2 workloads survive at least 90 % of 8 settings" in page
    first = "| w | 75% | 75% | 100% | 50% | 0% | 1.50 | hbm_gb_per_s x 0.5, a, 5 us | `hbm_gb_per_s` (2) |"
    assert first in page
    assert "| v | 100% | 75% | 100% | 50% | 0% | 1.00 |  |  |" in page
