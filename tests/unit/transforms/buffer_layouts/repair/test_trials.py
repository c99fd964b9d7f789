"""Trials of layouts in a region."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.dialects.spyre.layout_choices import LayoutChoice
from spyre_mlir.transforms.buffer_layouts.repair import trials
from spyre_mlir.transforms.buffer_layouts.repair.prices import LayoutPricing
from spyre_mlir.transforms.buffer_layouts.repair.regions import region_around
from spyre_mlir.transforms.buffer_layouts.repair.trials import RegionTrials, is_clear_gain
from spyre_mlir.transforms.loop_to_kernel.conversion import FunctionPlan
from tests.unit.transforms.buffer_layouts.repair.programs import (
    CONVERT,
    ROW,
    few_columns_less_their_greatest,
    function,
    greatest,
    less,
    planned,
    pricing,
    relu,
)


def region_trials(prices: LayoutPricing | None = None, text: str | None = None) -> RegionTrials:
    _, (layouts,) = planned(few_columns_less_their_greatest() if text is None else text)
    region = region_around(layouts.spots[0].ops, layouts)
    assert region is not None
    return RegionTrials(region, CONVERT, prices or pricing())


def test_rows_in_the_lanes_of_all_nests_are_found_together() -> None:
    """No single nest gains by it: each would be between two changes of layout."""
    found = region_trials().best()
    assert {n: choice.lanes for n, choice in found.layouts.items()} == {0: "m", 1: "r", 2: "m"}
    assert found.gain_us > 4


def test_a_number_that_a_region_reads_is_none_of_its_ops() -> None:
    number = f"%c = spyre.loop.constant 1.5 : f64 : {ROW}"
    tried = region_trials(
        text=function(number, relu("0", "x"), less("1", "0", "c"), greatest("2", "1"), less("out", "1", "2"))
    )
    first = tried.tried(tried.region.present)
    assert first is not None and first.layouts == tried.region.present and len(first.layouts) == 4


def test_layouts_that_are_said_are_never_changed() -> None:
    """Both changes of layout are beside the first nest, whose rows the text puts in the lanes."""
    said = "attributes {spyre.layout = #spyre.layout<lanes m>}"
    tried = region_trials(text=function(relu("0", "x", said), relu("out", "0")))
    first = tried.tried(tried.region.present)
    assert first is not None and list(tried.region.open) == [1] and set(first.near) == {1}


def test_the_same_layouts_are_priced_once() -> None:
    tried = region_trials()
    first = tried.tried(tried.region.present)
    priced = tried.pricing.work
    assert first is not None and tried.tried({}) is None
    # That the layouts are known is seen when they are planned: as much work as there are kernels.
    assert tried.pricing.work == priced + 5


def test_the_nearest_of_few_followers_change_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = region_trials()
    first = tried.tried(tried.region.present)
    assert first is not None
    more = list(tried._beside(first))
    monkeypatch.setattr(trials, "FEW_FOLLOWERS", 0)
    added = more[len(list(tried._beside(first))) :]
    # Of three nests two change, and the farthest one keeps its layout.
    assert added and {sum(c != first.layouts[n] for n, c in said.items()) for said in added} <= {1, 2}


def test_a_layout_that_nothing_can_have_is_no_trial() -> None:
    assert region_trials().tried({0: LayoutChoice("z")}) is None


def test_little_loss_is_not_worth_a_trial() -> None:
    tried = region_trials()
    assert tried.best(worth_us=1000.0).layouts == {} and tried.pricing.work == 2 * 5


def test_a_budget_ends_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other weights of a change of layout are work, too."""
    monkeypatch.setattr(trials, "WORK_AT_LEAST", 0)
    monkeypatch.setattr(trials, "WORK_PER_US", 0.0)
    tried = region_trials()
    assert tried.best().layouts == {} and tried.pricing.work == 2 * 5


def test_a_gain_is_clear_by_a_part_and_by_microseconds() -> None:
    assert is_clear_gain(100.0, 98.9, 0.5) and not is_clear_gain(100.0, 99.5, 0.5)
    assert is_clear_gain(10.0, 9.4, 0.5) and not is_clear_gain(10.0, 9.6, 0.5)
    assert is_clear_gain(10.0, 9.8, 0.0)


def test_loops_are_tried_where_no_larger_program_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    planned_with_loops, full = list[ModuleOp](), LayoutPricing.full

    def watched(prices: LayoutPricing, module: ModuleOp, functions: Sequence[FunctionPlan]) -> list[float] | None:
        planned_with_loops.append(module)
        return full(prices, module, functions)

    monkeypatch.setattr(LayoutPricing, "full", watched)
    tried = region_trials()
    whole = tried.best()
    assert tried.region.whole and len(planned_with_loops) == 2
    part = region_trials()
    part.region = replace(part.region, whole=False)
    assert part.best().layouts == whole.layouts and len(planned_with_loops) == 2
