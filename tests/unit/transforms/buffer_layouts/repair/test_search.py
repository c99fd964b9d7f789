"""The search for better layouts in a module."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from spyre_mlir.dialects.spyre.loop import NestOp
from spyre_mlir.transforms.buffer_layouts.repair import search
from spyre_mlir.transforms.buffer_layouts.repair.regions import LayoutRegion, region_around
from spyre_mlir.transforms.buffer_layouts.repair.search import LayoutSearch
from spyre_mlir.transforms.buffer_layouts.repair.trials import RegionTrials
from tests.unit.transforms.buffer_layouts.repair.programs import (
    CONVERT,
    few_columns_less_their_greatest,
    planned,
    pricing,
)
from tests.unit.transforms.levels import ops

TWICE = "\n".join(few_columns_less_their_greatest(name) for name in ("main", "other"))


def lanes(text: str) -> list[str | None]:
    """The loops that the search puts in the lanes of the nests; None where it changes nothing."""
    module, layouts = planned(text)
    found = LayoutSearch(module, CONVERT, pricing()).better(layouts)
    return [found[op].lanes if op in found else None for op in ops(module, NestOp)]


def test_equal_regions_are_tried_once_and_both_change(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = list[Any]()
    best = RegionTrials.best
    monkeypatch.setattr(RegionTrials, "best", lambda self, us: tried.append(self) or best(self, us))  # type: ignore[func-returns-value]
    assert lanes(TWICE) == ["m", "r", "m"] * 2
    assert len(tried) == 1


def test_small_tensors_are_tried_where_a_program_has_no_large_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    small = few_columns_less_their_greatest().replace("1024", "64")
    assert lanes(small) == ["n", "n", "n"]
    monkeypatch.setattr(search, "LEAST_PART", 10.0)
    assert lanes(small) == [None] * 3


def part_around(*given: Any) -> LayoutRegion | None:
    """A region that does not know that it is all of the function."""
    region = region_around(*given)
    return None if region is None else replace(region, whole=False)


def test_the_whole_program_decides_about_a_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "region_around", part_around)
    assert lanes(few_columns_less_their_greatest()) == ["m", "r", "m"]
    us = iter([[100.0], [100.0]])
    monkeypatch.setattr(LayoutSearch, "_planned_us", lambda *_, loops: next(us))
    assert lanes(few_columns_less_their_greatest()) == [None] * 3, "it takes as long as before"


def test_loops_are_planned_where_a_part_gains_without_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two plans without loops, then two with them; none with them where the first two do not gain."""
    asked, real = list[bool](), LayoutSearch._planned_us

    def priced(search: LayoutSearch, choices: Any, *, loops: bool) -> list[float] | None:
        asked.append(loops)
        return real(search, choices, loops=loops)

    monkeypatch.setattr(search, "region_around", part_around)
    monkeypatch.setattr(LayoutSearch, "_planned_us", priced)
    assert lanes(few_columns_less_their_greatest()) == ["m", "r", "m"]
    assert asked == [False, False, True, True]
    asked.clear()
    us = iter([[100.0], [99.0], [100.0], [101.0]])
    monkeypatch.setattr(LayoutSearch, "_planned_us", lambda *_, loops: asked.append(loops) or next(us))
    assert lanes(few_columns_less_their_greatest()) == [None] * 3, "it takes longer with loops"
    assert asked == [False, False, True, True]


def test_a_program_is_priced_with_the_layouts_that_are_asked_for() -> None:
    module, layouts = planned(few_columns_less_their_greatest())
    tried = LayoutSearch(module, CONVERT, pricing())
    for loops in (False, True):
        before, after = tried._us({}, loops=loops), tried._us(tried.better(layouts), loops=loops)
        assert before is not None and after is not None and after[0] < before[0] - 4
        assert tried._us(layouts[0].choices, loops=loops) == before
    assert not any("spyre.layout" in op.attributes for op in module.walk())


def test_no_work_is_left_after_a_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MOST_WORK", 0)
    assert lanes(TWICE) == [None] * 6


@pytest.mark.parametrize(("work", "begun"), [(90, True), (89, False)])
def test_a_region_is_begun_if_the_budget_pays_for_trials_and_plans(
    monkeypatch: pytest.MonkeyPatch, work: int, begun: bool
) -> None:
    """Of two functions of 5 kernels: two whole plans of 10, and five trials of 5; each is planned and priced."""
    monkeypatch.setattr(search, "WORK_AT_LEAST", work)
    monkeypatch.setattr(search, "WORK_PER_US", 0.0)
    assert (lanes(TWICE) != [None] * 6) == begun


def test_a_region_is_begun_if_its_own_spots_are_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The spots of a function beside a large one do not pay for it: 5 trials of 5 kernels are 50."""
    small = few_columns_less_their_greatest("small").replace("1024", "64")
    both = f"{few_columns_less_their_greatest()}\n{small}"
    monkeypatch.setattr(search, "LEAST_PART", 0.0)
    monkeypatch.setattr(search, "WORK_PER_US", 1000.0)
    monkeypatch.setattr(search, "WORK_AT_LEAST", 50)
    assert lanes(both)[3:] == ["n", "n", "n"]
    monkeypatch.setattr(search, "WORK_AT_LEAST", -1000)
    assert lanes(both)[3:] == [None] * 3
