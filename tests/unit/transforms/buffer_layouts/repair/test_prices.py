"""Predicted times of programs whose layouts are planned."""

from __future__ import annotations

import pytest

from spyre_mlir.hw.cost_parameters import CALIBRATED
from spyre_mlir.transforms.buffer_layouts.repair import prices
from spyre_mlir.transforms.buffer_layouts.repair.prices import LayoutPrice, LayoutPricing, edge_us
from spyre_mlir.universe import make_context
from tests.unit.transforms.buffer_layouts.repair.programs import (
    CONVERT,
    PLACED,
    columns_less_their_greatest,
    function,
    pricing,
    relu,
)
from tests.unit.transforms.levels import passed

ROWS = "attributes {spyre.layout = #spyre.layout<lanes m>}"
MB = 1024 * 1024 * 2 / 1e6


def quick(text: str, most_us: float = float("inf"), by: LayoutPricing | None = None) -> LayoutPrice | None:
    module = passed(text)
    (planned,) = CONVERT.planned(make_context(), module)
    return (by or pricing()).quick(module, planned, most_us)


def test_an_element_wise_function_takes_what_the_memory_takes() -> None:
    """One read and one write of 2 MB at 150 GB/s, and 5.74 us per MB that alternates; no core is idle."""
    price = quick(function(relu("out", "x")))
    assert price is not None and price.kernels == 1
    assert price.us == pytest.approx(1000 * 2 * MB / 150 + 5.74 * MB, rel=0.01)
    assert price.lost_us == 0


def test_changes_of_layout_are_lost() -> None:
    price, without = quick(function(relu("out", "x", ROWS))), quick(function(relu("out", "x")))
    assert price is not None and without is not None and price.kernels == 3
    assert price.lost_us == pytest.approx(price.us - without.us)


def test_idle_cores_are_lost() -> None:
    price = quick(columns_less_their_greatest())
    assert price is not None
    assert price.lost_us > 10, "16 of 32 cores look for the greatest"


def test_changes_of_layout_at_an_edge_take_time_beyond_it() -> None:
    """2 MB that lie with columns in the lanes go through device memory before, and behind it."""
    lies = "{spyre.layout = #spyre.layout<stick 1>}"
    text = function(relu("out", "x", ROWS)).replace(PLACED, lies)
    (inside,) = CONVERT.planned(make_context(), passed(text))
    assert edge_us(inside, CALIBRATED) == pytest.approx(2 * 1000 * MB / 150)
    (whole,) = CONVERT.planned(make_context(), passed(function(relu("out", "x", ROWS))))
    assert edge_us(whole, CALIBRATED) == 0


def test_what_is_too_long_has_no_price() -> None:
    assert quick(function(relu("out", "x")), most_us=10.0) is None


def test_numbers_of_the_cost_model_may_be_given() -> None:
    usual = quick(function(relu("out", "x")))
    slow = quick(function(relu("out", "x")), by=LayoutPricing(make_context(), ("hbm_gb_per_s=75",)))
    assert usual is not None and slow is not None and slow.us > 1.5 * usual.us


def test_small_programs_have_the_same_price_in_full() -> None:
    module, text = passed(columns_less_their_greatest()), columns_less_their_greatest()
    full, price = pricing().full(module, CONVERT.planned(make_context(), module)), quick(text)
    assert full is not None and price is not None and full == [pytest.approx(price.us)]


def test_loops_are_left_out_of_large_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prices, "MOST_IN_FULL", 2)
    monkeypatch.setattr(prices.PlanPass, "recorded", None)
    module, price = passed(columns_less_their_greatest()), quick(columns_less_their_greatest())
    found = pricing().full(module, CONVERT.planned(make_context(), module))
    assert price is not None and found == [price.us]
