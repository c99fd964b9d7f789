"""Plans side by side, as text."""

from __future__ import annotations

from spyre_mlir.machine.bundle.timeline import Timeline
from spyre_mlir.report.plan_picture import PlannedRow
from spyre_mlir.report.rival.beside import BesideRival, OperationPlans, SideKernel, ratio_text


def test_ratios_are_the_rivals_time_over_the_plans() -> None:
    assert ratio_text(3.0, 2.0) == "1.50 x"
    assert ratio_text(3.0, 0.0) == ratio_text(0.0, 2.0) == ""
    assert OperationPlans("aten.exp", "", "", (), ()).ratio == ""


def test_an_operation_of_several_layers_counts_as_often(softmax_timeline: Timeline) -> None:
    kernel = SideKernel(PlannedRow(0, "sdsc_0", "exp"), 2.0, 1, 3_000_000, False)
    pair = OperationPlans("aten.exp", "layers.*", "m.py:3", (kernel, kernel), (kernel,), times=4)
    assert (pair.us, pair.moved_bytes, pair.ratio) == ((16.0, 8.0), (24_000_000, 12_000_000), "2.00 x")
    text = str(BesideRival("p", "calibrated", softmax_timeline, softmax_timeline, (pair,), ("a note",)))
    assert "aten.exp, 4" in text and "16.0" in text and "2.00 x" in text and text.endswith("a note")


def test_without_a_plan_of_the_rival_there_are_no_totals(softmax_timeline: Timeline) -> None:
    alone = BesideRival("p", "peak", softmax_timeline, None, notes=("it does not compile",))
    assert alone.totals == []
    assert str(alone).splitlines() == [
        "p, torch-spyre's published rules and this plan, peak profile",
        "it does not compile",
    ]
